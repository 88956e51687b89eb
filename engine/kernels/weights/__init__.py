"""Weights, by which products multiply: one file for each kind (tensors, bytes, unpacking), and the kernels' side of
them."""
