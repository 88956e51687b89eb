"""One file per operation: what it computes, in PyTorch, and later the Triton kernel beside it."""
