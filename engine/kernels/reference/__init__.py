"""PyTorch definitions that several kernels share."""
