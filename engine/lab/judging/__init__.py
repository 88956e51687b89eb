"""Judging drafts and policies: drafts recorded at every position, policies played over them, and the self-test."""
