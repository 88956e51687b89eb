"""A box of lines above a screen: what help, keys and figures have in common."""

from __future__ import annotations

import textwrap
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from .once import DismissOnceScreen

KEY_WIDTH = 20
WIDTH, FRAME = 84, 7
"""Cells of the box at most, and what of them its border, padding and scroll bar take."""


class BoxScreen(ModalScreen[None], DismissOnceScreen[None]):
    """Shows lines to look at. Esc, F1 or q closes it. Subclasses write the lines."""

    DEFAULT_CSS = """
    BoxScreen { align: center middle; }
    BoxScreen > VerticalScroll {
        width: 84;
        max-width: 100%;
        height: auto;
        max-height: 100%;
        padding: 0 2;
        background: $surface;
        border: round $primary;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,f1,q", "dismiss", "Close", show=False)]
    HEAD: str | None = None
    """The title of the box."""

    def compose(self) -> ComposeResult:
        with VerticalScroll() as box:
            box.border_title, box.border_subtitle = self.HEAD, "↑ ↓ scroll · Esc closes"
            yield Static()

    def on_resize(self, event: events.Resize) -> None:
        self.draw(min(event.size.width, WIDTH) - FRAME)

    def draw(self, width: int) -> None:
        """Draw the lines anew, of so many cells."""
        self.query_one(Static).update(Content("\n").join(self.lines(width)))

    def lines(self, width: int) -> list[Content]:
        """The lines, of so many cells."""
        raise NotImplementedError


def head(title: str) -> Content:
    return Content.styled(title, "bold $primary")


def entry(name: str, says: str, width: int, style: str = "bold") -> Content:
    """A name, and beside it what it is: lines behind the first begin where its text does; behind a long name all of it
    stands below."""
    margin = " " * (KEY_WIDTH + 1)
    lines = textwrap.wrap(says, max(width - len(margin), 10))
    if len(name) > KEY_WIDTH:
        return Content.assemble((name, style), *(f"\n{margin}{line}" for line in lines))
    gap = margin[len(name) :]
    return Content.assemble((name, style), gap, f"\n{margin}".join(lines))
