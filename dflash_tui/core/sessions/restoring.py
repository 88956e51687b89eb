"""A conversation goes on with the settings that it was left with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from engine.commands import GenerationSettings

from ..settings.decoding import known_settings


def restored(settings: GenerationSettings, told: Mapping[str, Any], typed: Collection[str] = ()) -> GenerationSettings:
    """``settings`` with what a conversation's file tells of them (``Conversation.settings``), but for those that were
    ``typed``. What is out of range, or of another kind, stays as it is."""
    return replace(settings, **{name: value for name, value in known_settings(told).items() if name not in typed})
