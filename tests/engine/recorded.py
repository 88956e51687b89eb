"""The recorded drafts, read once by each worker."""

from __future__ import annotations

from functools import cache

from engine.lab.judging.files import DraftRecording, load_recordings
from measure.engine.record_drafts import FILE


@cache
def recorded_drafts() -> tuple[DraftRecording, ...]:
    return tuple(load_recordings(FILE))
