"""Commands on the whole conversation."""

from __future__ import annotations

from ...conversation.slash import Argument
from ..command import Command
from ..desk import Desk
from ..views import FilesView


def new(desk: Desk, _: Argument) -> None:
    desk.new()


def show_files(desk: Desk, _: Argument) -> None:
    desk.face.show(FilesView(desk.chat))


COMMANDS = (
    Command("new", "start a new chat", new, "ctrl+n", "new"),
    Command("unfold", "show what is folded: pastes, files, output", show_files, "alt+o", "files", priority=True),
)
