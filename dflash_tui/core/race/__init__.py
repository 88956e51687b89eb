"""The same question decoded in several ways."""
