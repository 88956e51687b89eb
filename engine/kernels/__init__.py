"""One file per operation: what it computes, in PyTorch, and the Triton kernel beside it."""
