"""Everything that can be done on the chat screen: the desk's commands, and the screen's own. A new one of these is a
row in one of these modules; nothing else has to know it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, cast

from textual.binding import Binding, BindingType

from dflash_tui.core.desk import commands
from dflash_tui.core.desk.command import Command
from dflash_tui.core.desk.desk import Desk

from ..chat.screen import ChatScreen
from . import conversation, prompt, settings, showing, stepping, viewing

Action = Command[ChatScreen]


def _at_the_desk(command: Command[Desk]) -> Action:
    choices = command.choices
    return replace(
        cast(Command[Any], command),
        run=lambda screen, argument: command.run(screen.desk, argument),
        choices=None if choices is None else lambda screen: choices(screen.desk),
    )


OWN: dict[str, list[Action]] = {}
"""The screen's own actions, by the command of the desk that they stand before in the help screen."""
for module in (conversation, viewing, prompt, settings, stepping, showing):
    for before, actions in module.COMMANDS.items():
        OWN.setdefault(before, []).extend(actions)

ACTIONS: dict[str, Action] = {
    action.id: action
    for command in commands.COMMANDS.values()
    for action in (*OWN.get(command.id, ()), _at_the_desk(command))
}
"""Every action by its id, in the order of the help screen."""


class BoundChatScreen(ChatScreen):
    """The chat screen with all that can be done on it."""

    ACTIONS: ClassVar[Mapping[str, Action]] = ACTIONS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(action.keys, f"act('{action.id}')", action.title, action.listed, priority=action.priority, id=action.id)
        for action in ACTIONS.values()
        if action.keys
    ]
