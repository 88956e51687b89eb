"""Looks at what a file claims to be events: types, ranges and characters, before anything is drawn from them."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from engine.events import (
    EngineError,
    EngineReady,
    PrefillDone,
    TurnFinished,
    TurnStarted,
    event_from_dict,
)
from engine.rounds.numbers import MAX_NUMBER

from ..settings.decoding import known_settings
from ..text.harmless import without_surrogates

RecordedEvent = EngineReady | TurnStarted | PrefillDone | TurnFinished | EngineError
"""Events that files hold as JSON. Rounds stand in blocks; ``LoadProgress`` and ``Notice`` are left out."""
MAX_NAME = 200
"""Characters of what should be a line: the name of a model, a device, a version."""
LONG_TEXTS = ("question", "text", "thought", "message", "hint", "banner")
"""Fields of events that may be long, with several lines; the transcript drops control characters."""
MAX_LIST = 1024


def checked_event(data: dict[str, Any]) -> RecordedEvent | None:
    """The event that a JSON object describes, fit to be shown; None when it describes none."""
    if data.get("event") not in (kind.__name__ for kind in get_args(RecordedEvent)):
        return None
    try:
        event = event_from_dict(data)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    if not isinstance(event, RecordedEvent) or not is_sound(event):
        return None
    if isinstance(event, TurnStarted):
        event = replace(event, settings=known_settings(event.settings))
    clean: dict[str, Any] = {name: _clean(name, value) for name, value in _texts(event)}
    return replace(event, **clean)


def one_line(text: str) -> str:
    """``text`` cut to ``MAX_NAME`` characters, without those that move a cursor or turn the direction of writing."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text[:MAX_NAME])


def _texts(event: RecordedEvent) -> list[tuple[str, str]]:
    return [(field.name, value) for field in fields(event) if isinstance(value := getattr(event, field.name), str)]


def _clean(name: str, text: str) -> str:
    return without_surrogates(text) if name in LONG_TEXTS else one_line(text)


def is_sound(value: Any) -> bool:
    """Whether every field of a data class holds what its type says, within what can be stored."""
    hints = get_type_hints(type(value))
    return all(_fits(getattr(value, field.name), hints[field.name]) for field in fields(value))


def _fits(value: Any, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, choice) for choice in get_args(hint))
    if origin is Literal:
        return value in get_args(hint)
    if origin is tuple:
        return isinstance(value, tuple) and len(value) <= MAX_LIST and all(_fits(v, get_args(hint)[0]) for v in value)
    if origin is dict:
        return isinstance(value, dict)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_NUMBER
    if hint is float:
        return isinstance(value, int | float) and math.isfinite(value) and 0 <= value <= MAX_NUMBER
    if is_dataclass(hint):
        return isinstance(value, hint) and is_sound(value)  # type: ignore[arg-type]
    return value is None if hint is NoneType else isinstance(value, hint)
