"""Rounds taken apart, and ways through them."""
