"""What the pair was trained on and is asked, from data to rows of tokens."""
