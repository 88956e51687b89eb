"""What the slash command or the path in the prompt could become: a short list above it."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size
from textual.content import Content
from textual.widgets import Static

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
        name_width = min(widest, max(self.app.size.width - 20, 10))
        rows = [
            _row(candidate, first + place == chosen, name_width)
            for place, candidate in enumerate(candidates[first : first + ROWS])
        ]
        left = len(candidates) - len(rows)
        more = f"  {left} more · ↑ ↓" if left else "  ↑ ↓"
        rows[-1] = Content.assemble(rows[-1], (more, "$verdict-pending"))
        self.update(Content("\n").join(rows))


def _row(candidate: Candidate, chosen: bool, name_width: int) -> Content:
    mark, style = ("▸ ", "bold $primary") if chosen else ("  ", "")
    name = set_cell_size(candidate.shown, name_width)
    return Content.assemble((f"{mark}{name}", style), (candidate.help, "$verdict-pending"))
