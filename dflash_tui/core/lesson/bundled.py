"""Finds lessons and the traces they are about."""

from __future__ import annotations

from pathlib import Path

from ..export.document import ExportedAnswer, Origin, collect, origin_of
from ..traces.bundled import bundled_traces
from ..traces.reader import TraceError, read_trace
from .pages import Page, lesson_pages
from .parsing import Lesson, LessonError, read_lesson

DEFAULT_LESSON = Path(__file__).parents[2] / "lessons" / "speculation.md"


def open_lesson(path: Path | None) -> tuple[Lesson, tuple[Page, ...], Origin]:
    """A lesson's pages and what made its trace; None is the bundled one. :class:`LessonError` when either can't be
    used."""
    lesson = read_lesson(path or DEFAULT_LESSON)
    answers, origin = _read_answers(lesson)
    return lesson, lesson_pages(lesson, answers), origin


def _read_answers(lesson: Lesson) -> tuple[tuple[ExportedAnswer, ...], Origin]:
    beside = lesson.path.parent / lesson.trace
    bundled = bundled_traces()
    path = beside if beside.is_file() else bundled.get(lesson.trace)
    if path is None:
        known = ", ".join(bundled)
        message = f"there is no trace {lesson.trace!r}, neither beside the lesson nor among the bundled ones ({known})."
        raise LessonError(lesson.path, 0, message)
    try:
        trace = read_trace(path)
    except TraceError as error:
        raise LessonError(lesson.path, 0, f"its trace can't be used. {error} {error.hint}") from None
    except OSError as error:
        raise LessonError(lesson.path, 0, f"its trace {path} can't be read: {error.strerror}.") from None
    collector = collect(trace.events())
    program = f"{trace.header.program} {trace.header.version}".strip()
    return collector.answers(), origin_of(collector.ready, trace.header.created, program)
