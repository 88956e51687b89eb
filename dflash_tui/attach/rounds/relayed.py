"""Checks the events that our own server passes on, drafts included, as strictly as those of a stranger's file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dflash_tui.core.sessions.checked_events import checked_event, is_sound
from engine.events import Event, PrefillDone, Step, TurnFinished, TurnStarted, event_from_dict
from engine.rounds.numbers import RecordError
from engine.rounds.rows import row_of, step_of

from ..untrusted import mapping, words


def relayed(data: Any, turn: int) -> Event | None:
    """The event, renumbered as one of this turn; None for what is no event."""
    fields = dict(mapping(data))
    event = _step(fields) if fields.get("event") == "Step" else checked_event(fields)
    if isinstance(event, TurnStarted | PrefillDone | Step | TurnFinished):
        return replace(event, turn=turn)
    return event


def _step(data: dict[str, Any]) -> Step | None:
    try:
        step = event_from_dict(data)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    if not isinstance(step, Step) or not is_sound(step) or step.num_accepted > len(step.draft):
        return None
    emitted = tuple(replace(token, text=words(token.text)) for token in step.emitted)
    return _as_stored(replace(step, emitted=emitted))


def _as_stored(step: Step) -> Step | None:
    """The step as it comes back from a file, if it does: its parts fit together, and its numbers are rounded as ours
    are."""
    try:
        return step_of(row_of(step))
    except (RecordError, ArithmeticError, LookupError, ValueError):
        return None
