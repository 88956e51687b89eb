"""What products multiply by: one file per kind of weight (tensors, bytes, unpacking), and the kernels' side of them."""
