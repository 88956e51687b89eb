"""Flags and what they mean: their kinds and values, settings from files, and the pair they name."""
