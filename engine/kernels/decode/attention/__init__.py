"""Attention of at most 16 rows: over all keys, over a window, of one row alone, of a tree's rows, with rope."""
