"""What a command of the chat in lines is: the counterpart of the screen's actions, under the same names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflash_tui.core.conversation.slash import Argument

if TYPE_CHECKING:
    from .chat import PlainChat

Run = Callable[["PlainChat", Argument], None]
"""Does it. May raise ``SlashError``, ``ValueError`` or a ``Failure`` with words for the user."""


@dataclass(frozen=True, slots=True)
class Command:
    """One row of the table that typed commands and ``/help`` are made from."""

    name: str
    title: str
    """What it does."""
    run: Run
    takes: str = ""
    """What can stand behind it; brackets mean that it can be left out."""

    @property
    def usage(self) -> str:
        """How it is typed, and what it does."""
        return f"/{self.name}{' ' + self.takes if self.takes else ''}: {self.title}"

    def argument(self, text: str) -> Argument:
        return Argument(text, f"/{self.name} takes {self.takes or 'nothing'} ({self.title})")
