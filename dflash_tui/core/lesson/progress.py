"""Where a reader stopped in a lesson, kept so that they can go on there."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from ..files.places import state_directory
from .parsing import Lesson

FILE_NAME = "lessons.json"


def read_place(lesson: Lesson) -> int:
    """The stop to begin with, counted from 0; 0 when nothing usable is kept."""
    place = _all().get(_key(lesson), 0)
    return place if 0 <= place < len(lesson.stops) else 0


def keep_place(lesson: Lesson, place: int) -> None:
    """Remember a stop. A place that can't be written is forgotten: no lesson ends over it."""
    places = _all() | {_key(lesson): place}
    path = state_directory() / FILE_NAME
    temporary = path.with_name(f".{FILE_NAME}.{uuid4().hex}")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary.write_text(json.dumps(places), encoding="utf-8")
        temporary.replace(path)


def _key(lesson: Lesson) -> str:
    """What a lesson is known by: its path, and its title, since the stops may be others under another title."""
    return f"{lesson.path.resolve()}#{lesson.title}"


def _all() -> dict[str, int]:
    path: Path = state_directory() / FILE_NAME
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {key: place for key, place in content.items() if isinstance(place, int)}
