"""What a command is: one thing that a user can do, however they ask for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..conversation.slash import Argument

Host = TypeVar("Host")
"""What a command works on: the desk, or for a face's own commands the face."""


@dataclass(frozen=True, slots=True)
class Command(Generic[Host]):
    """One row of the tables that keys, slash commands, the palette and every help are made from."""

    id: str
    """Names it within the program."""
    label: str
    """What it is called where people choose: in the palette, and in the line of keys by its first words."""
    title: str
    """What it does. Commands with the same title share a line of the help screen."""
    run: Callable[[Host, Argument], None]
    """Carries the command out. May raise ``SlashError``, ``ValueError`` or a ``Failure`` with words for the user."""
    keys: str = ""
    """The screen's key names, separated by commas; empty for none."""
    slash: str = ""
    """The name that is typed behind a slash; empty for none."""
    takes: str = ""
    """What can stand behind that name, such as ``on|off`` or ``[n]``; brackets mean that it can be left out."""
    priority: bool = False
    """Whether its keys act before the focused part of the screen sees them."""
    listed: bool = True
    """Whether the help screen and the palette show it."""
    choices: Callable[[Host], Iterable[str]] | None = None
    """What can stand behind the name, for completion; without it ``takes`` says so, as in ``on|off``."""

    @property
    def needs_argument(self) -> bool:
        return bool(self.takes) and not self.takes.startswith("[")

    @property
    def usage(self) -> str:
        """How it is typed, and what it does."""
        return f"/{self.slash}{' ' + self.takes if self.takes else ''}: {self.title}"

    def argument(self, text: str = "") -> Argument:
        return Argument(text, f"/{self.slash} takes {self.takes or 'nothing'} ({self.title})")

    def values(self, host: Host) -> list[str]:
        """The words that can be written behind the name, for completion; none where they can't be listed."""
        if self.choices is not None:
            return list(self.choices(host))
        words = self.takes.strip("[]")
        return words.split("|") if "|" in words and " " not in words else []
