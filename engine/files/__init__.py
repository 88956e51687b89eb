"""Reads what lies on disk: JSON that may be damaged, shards, fingerprints, and tensors through pinned memory."""
