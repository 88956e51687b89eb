"""Products of at most 16 rows with a weight: plain, packed, and the head with its best tokens."""
