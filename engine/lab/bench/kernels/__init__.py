"""Kernels alone: each at its shapes, against its floor."""
