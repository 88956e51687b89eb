"""The recorded drafts, read once by each worker."""

from __future__ import annotations

from functools import cache

from measure.engine.record_drafts import FILE
from measure.engine.recordings import load_recordings
from support.playing import DraftRecording


@cache
def recorded_drafts() -> tuple[DraftRecording, ...]:
    return tuple(load_recordings(FILE))
