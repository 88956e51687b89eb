"""Finished answers as their Markdown means them, in the place of the tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from dflash_tui.core.conversation.transcript import Drawn
from dflash_tui.core.text.counted import counted
from dflash_tui.core.text.harmless import sanitise
from dflash_tui.core.text.spans import Spans, TokenStyle

SHOWN = 6
"""How many of the newest questions are rendered: it is slow, and the tokens show the older ones."""
LOOKS: dict[TokenStyle, str] = {"version": "$primary", "fold": "$primary", "error": "bold $text-error"}
"""Looks of what isn't the answer's own; the rest of it is a remark."""


class RenderedView(VerticalScroll):
    """Shows finished answers as Markdown. Built only when asked for, and never from an answer that runs."""

    DEFAULT_CSS = """
    RenderedView {
        display: none;
        height: 1fr;
        & > .question { background: $panel; text-style: bold; width: 1fr; }
        & > .note { color: $verdict-pending; margin: 0 0 1 0; }
        & > Answer { padding: 0; margin: 0 0 1 0; background: $background; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "scroll_up", "Up", show=False),
        Binding("j", "scroll_down", "Down", show=False),
    ]

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._wanted: Sequence[Drawn] | None = None
        self._building = asyncio.Lock()
        """Children come and go one change after the other: one that is cut short would end the program."""

    def show(self, path: Sequence[Drawn]) -> None:
        """Render the newest of a path and go to the end."""
        self._wanted = path
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

    def scroll_to_question(self, by: int) -> None:
        """Go to the question before (-1) or behind (1) the one that stands at the top."""
        rows = [each.virtual_region.y for each in self.query(".question")]
        ahead = [row for row in rows if (row - self.scroll_offset.y) * by > 0]
        end = self.max_scroll_y if by > 0 else 0
        self.scroll_to(y=(min if by > 0 else max)(ahead, default=end), animate=False)

    def _widgets(self, path: Sequence[Drawn]) -> Iterator[Widget]:
        from .fence import Answer  # with parser and highlighter too much to wait for before the first frame

        if len(path) > SHOWN:
            yield Static(
                f"Above: {counted(len(path) - SHOWN, 'more question')}. Ctrl+T shows all, as tokens.", classes="note"
            )
        for each in path[-SHOWN:]:
            yield Static(_styled(each.question, "bold"), classes="question")
            yield Answer(each.answer)
            if each.below:
                yield Static(_styled(each.below, ""), classes="note")


def _styled(spans: Spans, plain: str) -> Content:
    """Spans as a text without empty lines around it; those without a look of their own have the look ``plain``."""
    text = Content.assemble(*((sanitise(span.text), LOOKS.get(span.style, plain)) for span in spans)).rstrip()
    return text[len(text) - len(text.plain.lstrip("\n")) :]
