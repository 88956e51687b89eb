"""A text that is being written, and how it is shown: control characters and those that reorder what follows as signs,
one for each, so that cursor and wrapping are where they seem to be. Textual's document ends a line at everything that
Python ends one at, such as a form feed or U+2028, and forgets which it was; here one ends where a terminal's does."""

from __future__ import annotations

import re
from typing import overload

from textual.document._document import Document, EditResult, Location

from dflash_tui.core.text.harmless import signed

_LINE_END = re.compile("\r\n|\r|\n")


class VisibleDocument(Document):
    """Its lines are those to draw; ``text`` and ranges of it are what was written."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._lines = _LINE_END.split(text)
        self._shown = [signed(line) for line in self._lines]

    @property
    def lines(self) -> list[str]:
        return self._shown

    @overload
    def __getitem__(self, line_index: int) -> str: ...
    @overload
    def __getitem__(self, line_index: slice) -> list[str]: ...
    def __getitem__(self, line_index: int | slice) -> str | list[str]:
        return self._shown[line_index]

    def replace_range(self, start: Location, end: Location, text: str) -> EditResult:
        """Replace a range of the text, as Textual's document does, keeping what was written beside what is drawn."""
        (top, left), (bottom, right) = sorted((start, end))
        replaced = self.get_text_range(start, end)
        before = self._lines[top][:left] if top < len(self._lines) else ""
        after = self._lines[bottom][right:] if bottom < len(self._lines) else ""
        lines = _LINE_END.split(before + text)
        stop = (top + len(lines) - 1, len(lines[-1]))
        lines[-1] += after
        self._lines[top : bottom + 1] = lines
        self._shown[top : bottom + 1] = map(signed, lines)
        return EditResult(stop, replaced)
