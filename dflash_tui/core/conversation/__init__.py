"""A conversation in memory: events in, transcript out."""
