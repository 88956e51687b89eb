"""Two versions of a question or an answer side by side, with their settings and figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from dflash_tui.core.conversation.comparison import Compared, compare, parting
from dflash_tui.core.conversation.turn import Turn
from dflash_tui.core.text.harmless import sanitise
from dflash_tui.core.text.spans import Spans, TokenStyle

from .once import DismissOnceScreen

MUTED = "$verdict-pending"
FRAME = 8
"""Cells of the border, the padding, the scroll bar and the gap between the halves."""
LOOKS: dict[TokenStyle, str] = {
    "accepted": "$verdict-accepted", "bonus": "$verdict-bonus-style $verdict-bonus",
    "corrected": "$verdict-corrected-style $verdict-corrected", "plain": "$verdict-plain-style $verdict-plain",
    "thought": "italic $verdict-pending",
}  # fmt: skip
"""How each kind of token looks, as in the transcript; kinds that are missing here are plain."""


class CompareScreen(ModalScreen[int | None], DismissOnceScreen[int | None]):
    """Shows two versions side by side. Gives the number of the version to go on with, or None."""

    DEFAULT_CSS = """
    CompareScreen > VerticalScroll {
        width: 100%;
        height: 100%;
        padding: 0 1;
        background: $background;
        border: round $primary;
        border-title-color: $primary;
        border-subtitle-color: $verdict-pending;
    }
    CompareScreen Horizontal { height: auto; }
    CompareScreen .half { width: 1fr; padding: 0 1 0 0; }
    CompareScreen .right { padding: 0 0 0 1; }
    CompareScreen #words { margin: 1 0 1 0; color: $verdict-pending; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Close", show=False),
        Binding("left", "turn(0, -1)", "Left back", show=False, priority=True),
        Binding("right", "turn(0, 1)", "Left on", show=False, priority=True),
        Binding("shift+left", "turn(1, -1)", "Right back", show=False, priority=True),
        Binding("shift+right", "turn(1, 1)", "Right on", show=False, priority=True),
        Binding("1", "choose(0)", "Left", show=False),
        Binding("2", "choose(1)", "Right", show=False),
    ]

    def __init__(
        self, versions: Sequence[Turn], places: tuple[int, int], spans_of: Callable[[int], Spans | None]
    ) -> None:
        """``places``: which of ``versions`` stand left and right; ``spans_of``: an answer's text as it was decoded."""
        super().__init__()
        self._versions, self._places, self._spans_of = versions, list(places), spans_of

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            with Horizontal():
                yield Static(classes="half", id="left-figures")
                yield Static(classes="half right", id="right-figures")
            yield Static(id="words")
            with Horizontal():
                yield Static(classes="half", id="left")
                yield Static(classes="half right", id="right")

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()
        self._show()

    def on_resize(self) -> None:
        self._show()

    def action_turn(self, side: int, by: int) -> None:
        """Show the next version (1) or the one before (-1) on a side (0 left, 1 right), skipping the other side's."""
        index = self._places[side] + by
        if index == self._places[1 - side]:
            index += by
        if 0 <= index < len(self._versions):
            self._places[side] = index
            self._show()

    def action_choose(self, side: int) -> None:
        self.dismiss(self._versions[self._places[side]].number)

    def _show(self) -> None:
        left, right = (self._versions[index] for index in self._places)
        frame = self.query_one(VerticalScroll)
        count = len(self._versions)
        frame.border_title = f"version {self._places[0] + 1} and version {self._places[1] + 1} of {count}"
        turning = "← → left, Shift right · " if count > 2 else ""
        narrow = self.app.size.width < 80
        frame.border_subtitle = f"{'' if narrow else turning}1 2 goes on with it · ↑ ↓ · Esc"
        lines = compare(left, right)
        names = max(cell_len(line.name) for line in lines) + 2
        for side, spans in (
            ("#left-figures", [line.left for line in lines]),
            ("#right-figures", [line.right for line in lines]),
        ):
            self.query_one(side, Static).update(self._figures(lines, spans, names))
        self.query_one("#words", Static).update(parting(left.answer, right.answer))
        for side, exchange in (("#left", left), ("#right", right)):
            self.query_one(side, Static).update(self._text(exchange))

    def _figures(self, lines: Sequence[Compared], heads: Sequence[str], names: int) -> Content:
        """One version's figures, which begin where its text does; what differs is bold. ``names``: cells of these."""
        width = max((self.app.size.width - FRAME) // 2, 24)
        names = min(names, width // 2)
        drawn = []
        for line, value in zip(lines, heads, strict=True):
            look = "bold $primary" if line.differs else "$foreground"
            drawn.append(
                Content.assemble((_cut(line.name, names - 1) + " ", MUTED), (_cut(value, width - names), look))
            )
        return Content("\n").join(drawn)

    def _text(self, exchange: Turn) -> Content:
        spans = self._spans_of(exchange.number)
        question = (f"{sanitise(exchange.question)}\n\n", "bold")
        if spans is None:
            return Content.assemble(question, sanitise(exchange.answer))
        looks = groupby(spans, key=lambda span: LOOKS.get(span.style, "$foreground"))
        groups = ((sanitise("".join(span.text for span in group)), look) for look, group in looks)
        return Content.assemble(question, *(piece for text, look in groups for piece in _marked(text, look)))


def _marked(text: str, look: str) -> tuple[tuple[str, str], ...]:
    """A text with its look, which blanks around it don't have: nobody underlines these."""
    words = text.strip()
    before = text[: len(text) - len(text.lstrip())]
    return (before, ""), (words, look), (text[len(before) + len(words) :], "")


def _cut(text: str, cells: int) -> str:
    """``text`` in exactly ``cells`` cells: filled up with blanks, or cut with ``…`` at its end."""
    text = sanitise(text)
    return set_cell_size(text, cells) if cell_len(text) <= cells else f"{set_cell_size(text, cells - 1)}…"
