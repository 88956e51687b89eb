"""What an action is: one thing a user can do on the chat screen, however they ask for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflash_tui.core.conversation.slash import Argument

if TYPE_CHECKING:
    from ..screens.chat import ChatScreen

Run = Callable[["ChatScreen", Argument], None]
"""Does it. May raise ``SlashError`` or ``ValueError`` with a message for the user, who gets a typed command back."""


@dataclass(frozen=True, slots=True)
class Action:
    """One row of the table that keys, slash commands, the palette and the help screen are made from."""

    id: str
    """Names it in the configuration's ``[keys]``; never changes once released."""
    title: str
    """What it does, in the words of the help screen. Actions with the same title share a line there."""
    run: Run
    keys: str = ""
    """Textual's key names, separated by commas; empty for none."""
    slash: str = ""
    """The slash command's name; empty for none."""
    takes: str = ""
    """What the slash command takes, such as ``on|off`` or ``[n]``; brackets mean it can be left out."""
    priority: bool = False
    """Its keys act before the focused widget sees them."""
    listed: bool = True
    """Shown in the help screen and the palette."""
    choices: Callable[[ChatScreen], Iterable[str]] | None = None
    """What can stand behind the slash command, for completion; without it ``takes`` says so, as in ``on|off``."""
    stand_in: str = ""
    """The id of an action that does this too: its key is named where another action has this one's."""

    @property
    def needs_argument(self) -> bool:
        return bool(self.takes) and not self.takes.startswith("[")

    def argument(self, text: str = "") -> Argument:
        return Argument(text, f"/{self.slash} takes {self.takes or 'nothing'} ({self.title})")
