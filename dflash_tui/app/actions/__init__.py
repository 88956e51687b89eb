"""Everything that can be done on the chat screen: the desk's commands, and the screen's own. A new one of these is a
row in one of these modules; nothing else has to know it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual.binding import Binding, BindingType

from dflash_tui.core.desk import commands
from dflash_tui.core.desk.command import Command
from dflash_tui.core.desk.desk import Desk

from ..chat.screen import ChatScreen
from . import conversation, prompt, settings, showing, stepping, viewing

Action = Command[ChatScreen]


def _at_the_desk(command: Command[Desk]) -> Action:
    choices = command.choices
    return Command(
        **{name: getattr(command, name) for name in _SHOWN},
        run=lambda screen, argument: command.run(screen.desk, argument),
        choices=None if choices is None else lambda screen: choices(screen.desk),
    )


_SHOWN = ("id", "title", "keys", "slash", "takes", "priority", "listed", "stand_in")

SECTIONS = (
    (conversation.COMMANDS, commands.conversation.COMMANDS),
    ((), commands.branches.COMMANDS),
    (prompt.COMMANDS, commands.sessions.COMMANDS),
    (settings.COMMANDS, commands.settings.COMMANDS),
    (viewing.COMMANDS, ()),
    (stepping.COMMANDS, commands.figures.COMMANDS),
    (showing.COMMANDS, commands.files.COMMANDS),
)
"""The screen's own and the desk's, as the help screen has them."""

ACTIONS: dict[str, Action] = {
    action.id: action for own, shared in SECTIONS for action in (*own, *map(_at_the_desk, shared))
}
"""By id, in the order of the help screen."""


class BoundChatScreen(ChatScreen):
    """The chat screen with all that can be done on it."""

    ACTIONS: ClassVar[Mapping[str, Action]] = ACTIONS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(action.keys, f"act('{action.id}')", action.title, action.listed, priority=action.priority, id=action.id)
        for action in ACTIONS.values()
        if action.keys
    ]
