"""The tables behind the gauges."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from dflash_tui.core.figures.table import Table

from .box import BoxScreen, head

MUTED = "$verdict-pending"


class StatisticsScreen(BoxScreen):
    """Shows the tables behind the gauges, beginning at one. Enter closes it, too."""

    DEFAULT_CSS = """
    StatisticsScreen > VerticalScroll { border-title-color: $primary; border-subtitle-color: $verdict-pending; }
    StatisticsScreen Static { margin: 0 0 1 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "dismiss", "Close", show=False)]

    def __init__(self, title: str, tables: Sequence[Table], section: str = "") -> None:
        """``title`` names the moment; ``section`` is the id of the table to begin at."""
        super().__init__()
        self._title, self._tables, self._section = title, tables, section

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            for table in self._tables:
                yield Static(id=table.id)

    def on_mount(self) -> None:
        frame = self.query_one(VerticalScroll)
        frame.border_title, frame.border_subtitle = self._title, "↑ ↓ scroll · Esc closes"
        frame.focus()
        if self._section:
            for table in self.query(f"#{self._section}"):
                self.call_after_refresh(frame.scroll_to_widget, table, top=True, animate=False)

    def draw(self, width: int) -> None:
        for table in self._tables:
            self.query_one(f"#{table.id}", Static).update(drawn(table, width))


def drawn(table: Table, width: int) -> Content:
    """The table as text: columns aligned, the first to the left and figures to the right. Where they are wider than so
    many cells, bars, a last column without a head, go, and then the first column wraps."""
    grid = [table.head, *table.rows] if table.head else list(table.rows)
    sizes = [max(map(len, column)) for column in zip(*grid, strict=True)]
    if table.head and not table.head[-1] and sum(2 + size for size in sizes) > width + 2:
        grid, sizes = [row[:-1] for row in grid], sizes[:-1]
    sizes[0] = min(sizes[0], max(width - sum(2 + size for size in sizes[1:]), 10))
    lines = [head(table.title)]
    for row in grid:
        says, *rest = textwrap.wrap(row[0], sizes[0], subsequent_indent="  ")
        cells = [f"{says:<{sizes[0]}}", *(f"{cell:>{size}}" for cell, size in zip(row[1:], sizes[1:], strict=True))]
        lines.append(
            Content.styled("\n".join(["  ".join(cells), *rest]), MUTED if table.head and row is grid[0] else "")
        )
    if table.note:
        lines.append(Content.styled(table.note, MUTED))
    return Content("\n").join(lines)
