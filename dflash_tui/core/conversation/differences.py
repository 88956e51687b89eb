"""What tells versions of an answer apart in a list of them: settings, and who answered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from engine.commands import ADDED_LATER

from ..settings.decoding import SETTINGS
from .models import short_name
from .turn import Turn


def settings_apart(turn: Turn, other: Turn) -> str:
    """In few words, what this version was decoded with that the other was not; empty for nothing."""
    return " · ".join(_apart(turn, other))


def models_apart(turns: Iterable[Turn]) -> dict[int, str]:
    """Who answered each question, by its number; nothing where one model answered all of them."""
    names = {turn.number: short_name(turn.target) for turn in turns if turn.target}
    return names if len(set(names.values())) > 1 else {}


def _apart(turn: Turn, other: Turn) -> Iterator[str]:
    if (drafter := _drafter(turn)) != _drafter(other):
        yield f"drafter {drafter}"
    if turn.system != other.system:
        yield f"system prompt {turn.system or 'none'}"
    mine, its = _known(turn.settings), _known(other.settings)
    for setting in SETTINGS:
        value = mine.get(setting.name)
        if value != its.get(setting.name):
            yield f"{setting.words} {_in_words(value)}"


def _known(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings, with those filled in that our engine leaves out while they have their old values. A server's stay
    as they are: it says nothing of how it drafts."""
    return {**ADDED_LATER, **settings} if "speculation" in settings else settings


def _drafter(turn: Turn) -> str:
    return turn.drafter or ("none" if turn.target else "not known")


def _in_words(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "not known" if value is None else str(value)
