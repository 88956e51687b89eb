"""Pure logic of the application: no Textual, no torch."""
