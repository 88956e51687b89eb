"""The recordings that come with the program, and the scripts that make them."""
