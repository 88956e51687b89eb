"""Events that our own server passes on as they are, drafts included. What a stranger sends in their place is checked
against the types they are declared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from engine.events import Event, PrefillDone, Settled, Step, TurnFinished, TurnStarted, event_from_dict

from .reading import MOST, mapping, words


def relayed(data: Any, turn: int) -> Event | None:
    """The event, as one of this turn; None for what is none."""
    try:
        event = event_from_dict(dict(mapping(data)))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    if not _fits(event, type(event)):
        return None
    if isinstance(event, TurnStarted | PrefillDone | Step | Settled | TurnFinished):
        event = replace(event, turn=turn)
    return event


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _fits(value: Any, kind: Any) -> bool:
    """``value`` is of the declared type, and its numbers and texts can be stored."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in inner)
    if origin is Literal:
        return value in inner
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(each, inner[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict)
    if kind is NoneType:
        return value is None
    if is_dataclass(kind):
        hints = _hints(kind)  # type: ignore[arg-type]
        return type(value) is kind and all(_fits(getattr(value, each.name), hints[each.name]) for each in fields(kind))
    if kind is bool:
        return isinstance(value, bool)
    if kind is int:
        return type(value) is int and 0 <= value < 1 << 63
    if kind is float:
        return type(value) in (int, float) and isfinite(value) and 0 <= value <= MOST * 1000
    return kind is str and isinstance(value, str) and words(value) == value
