"""What shows a round, and where in an answer it stands."""
