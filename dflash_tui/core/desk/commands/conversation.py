"""Commands on the whole conversation."""

from __future__ import annotations

from ...conversation.slash import Argument
from ..command import Command
from ..desk import Desk


def new(desk: Desk, _: Argument) -> None:
    desk.new()


COMMANDS = (Command("new", "New chat", "start a new chat", new, "ctrl+n", "new"),)
