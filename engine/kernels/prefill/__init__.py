"""Passes over a piece of a prompt."""
