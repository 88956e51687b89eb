"""Conversations played again: the recording of one, and the source that plays it in the engine's place."""
