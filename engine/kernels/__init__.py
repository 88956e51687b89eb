"""One file for each operation: what it computes, in PyTorch, and the Triton kernel beside it."""
