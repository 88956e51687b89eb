"""Kernels of passes over a piece of a prompt."""
