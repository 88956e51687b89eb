"""The Textual chat."""
