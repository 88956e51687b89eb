"""What lies on disk: JSON that may be damaged, shards, fingerprints, and tensors read through pinned memory."""
