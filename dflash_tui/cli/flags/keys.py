"""Mistakes in ``[keys]``, for the commands that open no screen."""

from __future__ import annotations

from collections.abc import Mapping

from dflash_tui.core.settings.config import Entry


def key_mistakes(keys: Mapping[str, Entry]) -> list[str]:
    """In words that begin with file and line."""
    if not keys:
        return []
    # The names of actions lie with the chat: imported only for who has keys of their own.
    from dflash_tui.app.actions import ACTIONS
    from dflash_tui.app.keymap import accepted_keys

    return accepted_keys(keys, ACTIONS).mistakes
