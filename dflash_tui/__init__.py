"""The application: a Textual chat and a headless command over one core."""
