"""Readers of rounds as they were written before trace format 8. Nothing here writes; FORMAT.md describes the bytes."""
