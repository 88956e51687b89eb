"""Recorded runs: the packing of steps, the file format (see FORMAT.md), and replaying."""
