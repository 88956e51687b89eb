"""Answers, conversations, races and lessons as files that stand on their own: HTML and JSON."""
