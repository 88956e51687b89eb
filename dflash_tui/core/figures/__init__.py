"""Figures of a turn, and of the machine beside it."""
