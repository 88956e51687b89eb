"""What layers keep of committed tokens."""
