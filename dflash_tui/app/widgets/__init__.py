"""Widgets of the chat: one idea per file."""
