"""The recorded drafts, read once by each worker."""

from __future__ import annotations

from functools import cache

from engine.lab.judging.record import DraftRecording
from measure.engine.record_drafts import FILE
from measure.engine.recordings import load_recordings


@cache
def recorded_drafts() -> tuple[DraftRecording, ...]:
    return tuple(load_recordings(FILE))
