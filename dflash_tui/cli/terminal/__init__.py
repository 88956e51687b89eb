"""The terminal and the standard streams, whatever state they are in."""
