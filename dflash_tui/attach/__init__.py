"""Talking to a server that runs elsewhere: connections, dialects, and what its stream says of its rounds. No Textual,
no torch."""
