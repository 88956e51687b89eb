"""How launches of at most 16 rows are cut into tiles: by card, by format, and which are tried on a card."""
