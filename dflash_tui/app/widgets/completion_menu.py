"""What the slash command or the path in the prompt could become: a short list above it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size
from textual.content import Content
from textual.widgets import Static

from dflash_tui.core.text.wrapping import shortened

from ..completion import Candidate

ROWS = 6
SIDES = 2
"""Cells of padding, left and right together."""


class CompletionMenu(Static):
    """Hidden while there is nothing to choose from. The prompt keeps the keyboard."""

    DEFAULT_CSS = """
    CompletionMenu {
        display: none;
        height: auto;
        padding: 0 1;
        background: $surface;
        text-wrap: nowrap;
        text-overflow: clip;
    }
    """

    _candidates: Sequence[Candidate] = ()
    _chosen = 0

    def show(self, candidates: Sequence[Candidate], chosen: int) -> None:
        """Draw the rows around the chosen one."""
        self._candidates, self._chosen = candidates, chosen
        self.display = bool(candidates)
        if candidates:
            self._draw()

    def on_resize(self) -> None:
        """The names, the sentences and the line below them share another width."""
        if self._candidates:
            self._draw()

    def _draw(self) -> None:
        candidates, chosen = self._candidates, self._chosen
        first = min(max(chosen - ROWS // 2, 0), max(len(candidates) - ROWS, 0))
        widest = max(cell_len(candidate.shown) for candidate in candidates) + 1
        width = self.app.size.width - SIDES
        name_width = min(widest, max(width - 18, 10))
        shown = candidates[first : first + ROWS]
        rows = [_row(candidate, index == chosen, name_width, width) for index, candidate in enumerate(shown, first)]
        self.update(Content("\n").join([*rows, self._below(len(candidates) - len(shown), name_width, width)]))

    def _below(self, left: int, name_width: int, width: int) -> Content:
        """How the chosen command is typed, or its sentence where its row had no room for that; and how to choose."""
        chosen = self._candidates[self._chosen]
        cut = cell_len(chosen.help) > _room(chosen, name_width, width)
        words = chosen.help if cut else f"{chosen.text}{chosen.takes}" if chosen.takes else ""
        keys = f"{left} more · ↑ ↓ Tab" if left else "↑ ↓ Tab"
        if cell_len(words) + len(keys) + 4 > width and left:
            keys = f"+{left} ↑ ↓"
        words = set_cell_size(shortened(words, max(width - len(keys) - 4, 0)), max(width - len(keys) - 2, 0))
        return Content.styled(f"  {words}{keys}", "$verdict-pending")


def _room(candidate: Candidate, name_width: int, width: int) -> int:
    """Cells for a sentence between the name and the key."""
    return max(width - name_width - 2 - (cell_len(candidate.key) + 2 if candidate.key else 0), 0)


def _row(candidate: Candidate, chosen: bool, name_width: int, width: int) -> Content:
    """The name, what it does, and the key that does it at the end."""
    mark, style = ("▸ ", "bold $primary") if chosen else ("  ", "")
    room = _room(candidate, name_width, width)
    help = set_cell_size(shortened(candidate.help, room), room + 2 * bool(candidate.key)) if candidate.help else ""
    name = f"{mark}{set_cell_size(candidate.shown, name_width)}"
    return Content.assemble((name, style), (help, "$verdict-pending"), (candidate.key, "bold"))
