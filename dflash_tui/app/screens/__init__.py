"""Screens of the chat."""
