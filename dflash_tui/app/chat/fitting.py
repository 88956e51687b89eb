"""Which commands fit the moment: they stand first in the palette, and behind a slash."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dflash_tui.core.desk.command import Command
from dflash_tui.core.desk.desk import Desk

BEFORE = ("model", "replay", "lesson", "sessions", "theme", "system", "block", "temperature")
RUNNING = ("stop", "teach", "steps", "present", "lens")
CODE = ("save", "open", "copy")
LOOKING = ("steps", "teach", "race", "present", "predict", "lens", "rendered", "retry", "edit", "statistics", "export")
"""Ids of the commands that fit before the first answer, while one runs, after one with code, and after any other."""


def by_fitness(commands: Iterable[Command[Any]], desk: Desk) -> list[Command[Any]]:
    """Sort commands: first those that fit what the chat shows now, then the others in the order of the help."""
    newest, chat = desk.chat.newest, desk.chat
    if chat.busy:
        first: tuple[str, ...] = RUNNING
    elif not chat.turns:
        first = BEFORE
    else:
        first = (*LOOKING[:4], *(CODE if newest is not None and "```" in newest.answer else ()), *LOOKING[4:])
    places = {id: rank for rank, id in enumerate(first)}
    return sorted(commands, key=lambda command: places.get(command.id, len(places)))
