"""Configuration files and screen options."""
