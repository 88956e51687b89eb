"""The recorded drafts, read once by each worker."""

from __future__ import annotations

from functools import cache

from engine.lab.judging.files import Recording, load_recordings
from measure.engine.record_drafts import FILE


@cache
def recorded_drafts() -> tuple[Recording, ...]:
    return tuple(load_recordings(FILE))
