"""Where a reader stopped in a lesson, kept so that they can go on there."""

from __future__ import annotations

from ..files.places import keep, read_kept
from .parsing import Lesson

FILE_NAME = "lessons.json"


def read_place(lesson: Lesson) -> int:
    """The stop to begin with, counted from 0; 0 when nothing usable is kept."""
    place = read_kept(FILE_NAME).get(_key(lesson), 0)
    return place if isinstance(place, int) and 0 <= place < len(lesson.stops) else 0


def keep_place(lesson: Lesson, place: int) -> None:
    """Remember a stop. A place that can't be written is forgotten: no lesson ends over it."""
    keep(FILE_NAME, read_kept(FILE_NAME) | {_key(lesson): place})


def _key(lesson: Lesson) -> str:
    """What a lesson is known by: its path, and its title, since the stops may be others under another title."""
    return f"{lesson.path.resolve()}#{lesson.title}"
