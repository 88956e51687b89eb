"""Kernels for what a round does around its passes: choose a width, sample, accept, move what was accepted."""
