"""One prompt without a screen: reading it, one turn of a source, and the answer into a pipe or a file."""
