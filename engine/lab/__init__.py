"""Measuring, training and judging. The engine itself imports nothing from here."""
