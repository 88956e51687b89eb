"""What the slash command or the path in the prompt could become: a short list above it."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size
from textual.content import Content
from textual.widgets import Static

from dflash_tui.core.text.wrapping import shortened

from ..completion import Candidate

ROWS = 6


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

    def show(self, candidates: list[Candidate], chosen: int) -> None:
        """Draw the rows around the chosen one."""
        self.display = bool(candidates)
        if not candidates:
            return
        first = min(max(chosen - ROWS // 2, 0), max(len(candidates) - ROWS, 0))
        widest = max(cell_len(candidate.shown) for candidate in candidates) + 2
        width = self.app.size.width - 2
        name_width = min(widest, max(width - 18, 10))
        shown = candidates[first : first + ROWS]
        left = len(candidates) - len(shown)
        more = f"  {left} more · ↑ ↓" if left else "  ↑ ↓"
        rows = [
            _row(candidate, place == chosen, name_width, width - len(more))
            for place, candidate in enumerate(shown, first)
        ]
        self.update(Content("\n").join([*rows[:-1], Content.assemble(rows[-1], (more, "$verdict-pending"))]))


def _row(candidate: Candidate, chosen: bool, name_width: int, width: int) -> Content:
    """The name, what it does, what it takes where that fits whole, and the key that does it at the end."""
    mark, style = ("▸ ", "bold $primary") if chosen else ("  ", "")
    name = f"{mark}{set_cell_size(candidate.shown, name_width)}"
    room = max(width - cell_len(name) - cell_len(candidate.key) - 2, 0)
    told = f"{candidate.help}  {candidate.takes}".rstrip()
    told = shortened(told if cell_len(told) <= room else candidate.help, room) if candidate.help else ""
    return Content.assemble((name, style), (set_cell_size(told, room + 2), "$verdict-pending"), (candidate.key, "bold"))
