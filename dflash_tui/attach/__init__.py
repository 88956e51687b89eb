"""Attaches to a server that runs elsewhere: connections, dialects, and what its stream tells of its rounds. No Textual,
no torch."""
