"""Kernels of passes of at most 16 rows: attention, products, experts, layers that recur, and here norms."""
