"""Mixtures of experts for at most 16 rows: the router, the products, the expert that all rows share."""
