"""Finished answers as their Markdown means them, in the place of the tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from dflash_tui.core.text.harmless import sanitise
from engine.commands import Message

SHOWN = 12
"""How many of the newest messages are rendered: it is slow, and the tokens show the older ones."""


class RenderedView(VerticalScroll):
    """Shows finished answers as Markdown. Built only when asked for, and never from an answer that runs."""

    DEFAULT_CSS = """
    RenderedView {
        display: none;
        height: 1fr;
        & > .question { background: $panel; text-style: bold; width: 1fr; }
        & > .note { color: $verdict-pending; }
        & > Answer { padding: 0; margin: 0 0 1 0; background: $background; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "scroll_up", "Up", show=False),
        Binding("j", "scroll_down", "Down", show=False),
    ]

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._wanted: Sequence[Message] | None = None
        self._building = asyncio.Lock()
        """Children come and go one change after the other: one that is cut short would end the program."""

    def show(self, messages: Sequence[Message]) -> None:
        """Render the newest of ``messages`` and go to the end."""
        self._wanted = messages
        self._build()

    def hide(self) -> None:
        self._wanted, self.display = None, False
        self._build()

    @work
    async def _build(self) -> None:
        """Put in place the messages that are wanted by the time this change has its turn."""
        async with self._building:
            wanted = self._wanted
            await self.remove_children()
            if wanted is not None:
                await self.mount_all(self._widgets(wanted))
            self.display = wanted is not None and wanted is self._wanted
            self.scroll_end(animate=False)

    def _widgets(self, messages: Sequence[Message]) -> Iterator[Widget]:
        from .fence import Answer  # with parser and highlighter too much to wait for before the first frame

        if len(messages) > SHOWN:
            yield Static(f"{len(messages) - SHOWN} earlier messages: see the tokens.\n", classes="note")
        for message in messages[-SHOWN:]:
            if message.role == "user":
                yield Static(sanitise(message.content) + "\n", classes="question", markup=False)
            else:
                yield Answer(message.content)
