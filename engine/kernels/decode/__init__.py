"""Kernels of passes of at most 16 rows: products, norms, rotary embedding, attention, experts, head."""
