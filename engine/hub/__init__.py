"""Goes from a model's name to local folders: finds which drafter belongs to which target, and fetches both. No torch
here."""
