"""Text for a grid of cells, and what in it is code."""
