"""The questions that wait for the answer before them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual.content import Content
from textual.widget import Widget

from dflash_tui.core.text.harmless import sanitise
from dflash_tui.core.text.wrapping import shortened

ROWS = 3
HEAD, TAIL = "next ❯ ", "  ↑ takes it back"


class QueuedQuestions(Widget):
    """One line for each of the next few; hidden when there are none."""

    DEFAULT_CSS = """
    QueuedQuestions { display: none; height: auto; padding: 0 1; color: $verdict-pending; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.questions: tuple[str, ...] = ()

    def show(self, questions: Sequence[str]) -> None:
        if tuple(questions) != self.questions:
            self.questions = tuple(questions)
            self.display = bool(questions)
            self.refresh(layout=True)

    def render(self) -> Content:
        lines = [f"{HEAD}{sanitise(' '.join(text.split()))}" for text in self.questions[:ROWS]]
        left = len(self.questions) - len(lines)
        width = max(self.size.width, len(TAIL))
        last = len(lines) - 1
        tail = f" +{left} more{TAIL}" if left else TAIL
        return Content("\n".join(_fit(line, width, tail if row == last else "") for row, line in enumerate(lines)))


def _fit(line: str, width: int, tail: str) -> str:
    return shortened(line, max(width - cell_len(tail), 1)) + tail
