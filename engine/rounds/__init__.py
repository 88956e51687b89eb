"""A round as everybody is told of it, in columns, and what is counted of it. Standard library only."""
