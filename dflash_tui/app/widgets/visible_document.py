"""A text that is being written, and how it is shown: control characters and those that reorder what follows as signs,
one for each, so that cursor and wrapping are where they seem to be."""

from __future__ import annotations

from typing import overload

from textual.document._document import Document, EditResult, Location

from dflash_tui.core.text.harmless import signed


class VisibleDocument(Document):
    """Its lines are those to draw; ``text`` and ranges of it are what was written."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
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
        (top, _), (bottom, _) = sorted((start, end))
        result = super().replace_range(start, end, text)
        self._shown[top : bottom + 1] = map(signed, self._lines[top : result.end_location[0] + 1])
        return result
