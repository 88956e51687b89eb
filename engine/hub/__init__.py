"""From a model's name to local folders: which drafter belongs to which target, and fetching both. No torch here."""
