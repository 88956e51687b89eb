"""What decoding costs on this machine, every figure beside its bytes and its share of what the memory can do."""
