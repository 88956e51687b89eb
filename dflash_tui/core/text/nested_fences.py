"""Which fence closes which. By CommonMark the first bare fence that is long enough ends a block; models, though, write
documents that hold fences into fences that are no longer. Such a block ends where all behind it have partners."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

_FENCE = re.compile(
    r"\n(?P<indent>[ \t]*)(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})(?P<info>.*)(?=(?P<blank>\n[ \t\r]*$|\Z)?)", re.MULTILINE
)
"""A fence, from the end of the line before on. Only a line feed ends a line, neither a form feed nor U+2028."""
MOST_FENCES = 400
"""The most fences of a text that are looked at for nesting; in one with more, none are nested."""


@dataclass(frozen=True, slots=True)
class Fence:
    """A line that may open a block, or close one."""

    start: int
    end: int
    """Characters of the text before the line feed in front of it, and up to the end of its line."""
    indent: int
    mark: str
    """Its backticks or tildes."""
    info: str
    before_blank: bool
    """Whether the line below the fence is blank."""

    def closes(self, opening: Fence) -> bool:
        return (
            not self.info
            and self.indent <= opening.indent + 3
            and self.mark[0] == opening.mark[0]
            and len(self.mark) >= len(opening.mark)
        )


def pairs_of_fences(text: str, is_document: Callable[[str], bool]) -> Iterator[tuple[Fence, Fence | None]]:
    """What opens and closes each block of a text, which begins with a line feed; None closes one without an end.
    ``is_document`` says of an info string whether fences are to be expected in its block."""
    fences = [
        Fence(*match.span(), len(match["indent"]), match["fence"], match["info"].strip(), match["blank"] is not None)
        for match in _FENCE.finditer(text)
    ]
    closing = _plain(fences) if len(fences) > MOST_FENCES else _FenceNesting(fences, is_document).closing
    index = 0
    while index < len(fences):
        closed_by = closing[index]
        yield fences[index], None if closed_by is None else fences[closed_by]
        index = len(fences) if closed_by is None else closed_by + 1


def _plain(fences: Sequence[Fence]) -> list[int | None]:
    """By CommonMark: the place of what closes each fence, if it opens a block."""
    return [_first_closing(fences, index) for index in range(len(fences))]


def _first_closing(fences: Sequence[Fence], index: int) -> int | None:
    return next((later for later in range(index + 1, len(fences)) if fences[later].closes(fences[index])), None)


class _FenceNesting:
    """Finds from the end on what closes each fence, if it opens a block."""

    def __init__(self, fences: Sequence[Fence], is_document: Callable[[str], bool]) -> None:
        self._fences = fences
        self.closing: list[int | None] = [None] * len(fences)
        self._whole = [False] * len(fences) + [True]
        """Whether all blocks are closed from this fence on, if it opens one."""
        for index in reversed(range(len(fences))):
            closing = self._closing(index, is_document(fences[index].info))
            self.closing[index] = closing
            self._whole[index] = closing is not None and self._whole[closing + 1]

    def _closing(self, index: int, document: bool) -> int | None:
        first = _first_closing(self._fences, index)
        between = self._fences[index + 1 : first]
        holds = any(each.info for each in between)
        if not (document or holds):
            return first
        ends = list(self._ends(index, document))
        if ends:
            return next((end for end in ends if self._fences[end].before_blank), ends[-1])
        # Nothing fits: a document goes on as far as there is text, anything else as CommonMark says.
        unfinished = document and (holds or (first is not None and not self._fences[first].before_blank))
        return None if unfinished else first

    def _ends(self, index: int, document: bool) -> Iterator[int]:
        """Fences that may close a block which holds whole blocks: behind them, too, all are whole."""
        outer, inner = self._fences[index], None
        for later in range(index + 1, len(self._fences)):
            fence = self._fences[later]
            if inner is not None:
                inner = None if fence.closes(inner) else inner
            elif fence.closes(outer):
                if self._whole[later + 1]:
                    yield later
                if not document:
                    return
                inner = fence  # or it opens a block without a language
            elif fence.mark[0] != outer.mark[0] or len(fence.mark) >= len(outer.mark):
                inner = fence
