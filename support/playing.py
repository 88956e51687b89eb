"""Recorded drafts, and what a policy makes of them, as the lab plays them."""

from engine.lab.judging.play import NOTHING, Played, RecordedChoices, RecordedDraft, RecordedLookup, play
from engine.lab.judging.record import DraftRecording

__all__ = ["NOTHING", "DraftRecording", "Played", "RecordedChoices", "RecordedDraft", "RecordedLookup", "play"]
