"""A conversation goes on with the settings that it was left with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from typing import Any

from engine.commands import AUTO, GenerationSettings


def restored(settings: GenerationSettings, told: Mapping[str, Any], typed: Collection[str] = ()) -> GenerationSettings:
    """``settings`` with what a conversation's file tells of them (``Conversation.settings``), but for those that were
    ``typed``. What is out of range, or of another kind, stays as it is."""
    for each in fields(GenerationSettings):
        if each.name in told and each.name not in typed and _fits(told[each.name], getattr(settings, each.name)):
            change: dict[str, Any] = {each.name: told[each.name]}
            try:
                settings = replace(settings, **change)
            except (ValueError, TypeError):
                continue
    return settings


def _fits(value: object, default: object) -> bool:
    """Numbers for numbers, and nothing but a switch for a switch."""
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, float):
        return isinstance(value, int | float)
    return isinstance(value, int) or value == AUTO
