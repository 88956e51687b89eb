"""Pure decisions about drafts: how many to verify, and in which tree. Standard library only."""
