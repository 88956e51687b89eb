"""Helpers that are compiled into kernels of decoding and of prompts."""
