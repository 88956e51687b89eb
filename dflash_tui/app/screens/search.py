"""Search the questions that were asked before."""

from __future__ import annotations

from collections.abc import Iterable

from rich.cells import cell_len, set_cell_size
from textual.content import Content

from dflash_tui.core.sessions.prompts import PromptHistory
from dflash_tui.core.text.harmless import sanitise

from .picker import PickerScreen

LENGTH = 200
"""Characters of a question in the list."""


class SearchScreen(PickerScreen[str]):
    """Gives the chosen question, or None."""

    HEAD = "earlier questions"
    KEYS = "↑ ↓ move · Enter brings it into the prompt · Esc closes"

    def __init__(self, questions: PromptHistory, words: str = "") -> None:
        super().__init__(words)
        self._questions = questions

    def find(self, words: str) -> Iterable[str]:
        return self._questions.search(words)

    def describe(self, entry: str) -> Content:
        text = sanitise(" ".join(entry[:LENGTH].split()))
        return Content(set_cell_size(text, min(cell_len(text), self.line_width)))
