"""HTTP to one server: its address, its keys, its connection, and from bytes to events."""
