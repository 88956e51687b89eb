"""Goes from a name to models that are ready: what fits, what is read, what is compiled meanwhile."""
