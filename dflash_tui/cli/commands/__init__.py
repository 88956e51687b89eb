"""The commands by name, a file each: its flags, and what it does."""
