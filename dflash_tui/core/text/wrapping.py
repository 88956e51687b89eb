"""Text for a grid of cells, wrapped by cell width. Appending wraps only the last row again, since greedy wrapping never
moves a row before it; looks don't matter here."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size, split_graphemes

from engine.rounds.growing_text import GrowingText
from engine.rounds.lazy_sequence import LazySequence

from .harmless import is_harmless, sanitise
from .marks import Mark, Marks
from .spans import Span, Spans

_WORD = re.compile(r"‹ \d+/\d+ ›\s*|\S+\s*|\s+")
"""The mark of versions stays together."""
_WIDE = re.compile("[\u3001-\u3015\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff5e]+")
"""Characters of two cells that combine with nothing: long Chinese and Japanese words are cut quickly."""


def width_of(text: str) -> int:
    """Cells that ``text`` takes; it holds no control characters."""
    return len(text) if text.isascii() else cell_len(text)


def shortened(text: str, cells: int) -> str:
    """``text`` in at most ``cells`` cells, with … where it was cut. Costs what is shown, however long the text is."""
    head = text[: 4 * cells]
    if len(head) == len(text) and width_of(text) <= cells:
        return text
    return set_cell_size(head, max(cells - 1, 0)).rstrip() + "…"


def wrap(line: str, width: int) -> list[str]:
    """Cut one line into rows of ``width`` cells. Blanks hang over the edge rather than start a row."""
    if width_of(line.rstrip()) <= width:
        return [line]
    rows: list[str] = []
    row, used = "", 0
    for word in _WORD.findall(line):
        size = width_of(word.rstrip())
        if row and used + size > width:
            rows.append(row)
            row, used = "", 0
        if size > width:
            *full, word = _chop(word, width)
            rows += full
        row += word
        used += width_of(word)
    return [*rows, row]


def _chop(word: str, width: int) -> list[str]:
    """Break a word that is longer than a row, between characters as a reader sees them."""
    core = word.rstrip()
    if core.isascii() or _WIDE.fullmatch(core):
        size = width if core.isascii() else max(width // 2, 1)
        *full, last = range(0, len(core), size)
        return [*(word[start : start + size] for start in full), word[last:]]
    cuts = [0]
    used = 0
    for start, end, size in split_graphemes(word)[0]:
        if used + size > width and start > cuts[-1] and not word[start:end].isspace():
            cuts.append(start)
            used = 0
        used += size
    return [word[start:end] for start, end in zip(cuts, [*cuts[1:], len(word)], strict=True)]


class Row(NamedTuple):
    text: str
    soft: bool
    """Whether the row goes on in the next one: it was wrapped, not ended by a newline."""
    start: int
    """The character of the document at which the row's text begins."""


class WrappedRows(LazySequence[Row]):
    """The rows of a text, in some five bytes each."""

    def __init__(self, text: GrowingText) -> None:
        self._text = text
        self._starts = array("I", (0,))
        self._soft = bytearray()
        """1 for each row that was wrapped, 0 for each that a newline ended; of every row but the last."""

    def begin(self, start: int, soft: bool) -> None:
        """The last row ends, where it is wrapped or at a newline, and the next one begins at character ``start``."""
        self._starts.append(start)
        self._soft.append(soft)

    def cut(self, count: int) -> None:
        """Forget the rows behind the first ``count``, of which there is at least one."""
        del self._starts[count:]
        del self._soft[count - 1 :]

    def at(self, offset: int) -> int:
        """The row that holds a character."""
        return max(bisect_right(self._starts, offset) - 1, 0)

    def __len__(self) -> int:
        return len(self._starts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedRows) and len(self) == len(other) and all(map(Row.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]  # as lists have none

    def item_at(self, index: int) -> Row:
        start = self._starts[index]
        if index == len(self._soft):
            return Row(self._text.between(start, len(self._text)), False, start)
        soft = bool(self._soft[index])
        return Row(self._text.between(start, self._starts[index + 1] - (not soft)), soft, start)


class Document:
    """A growing text as rows of ``width`` cells, and what each of its pieces is."""

    def __init__(self, width: int) -> None:
        self.width = max(width, 1)
        self.folded = False
        """Whether thoughts are left out; they come back when unfolded."""
        self.clear()

    def clear(self) -> None:
        self._everything = self._text = GrowingText()
        self._all = self.marks = Marks()
        self.rows = WrappedRows(self._text)

    def append(self, spans: Iterable[Span]) -> int:
        """Add spans at the end; returns the first row that changed."""
        changed = len(self.rows) - 1
        spans = Spans.of(spans)
        text = "".join(spans.texts)
        if not is_harmless(text):
            spans = Spans([sanitise(piece) for piece in spans.texts], spans.labels)
            text = "".join(spans.texts)
        self._all.extend(spans)
        if self.folded:
            self._everything.append(text)
            text = self._show(spans.without("thought"))
        self._wrap(text)
        return changed

    @property
    def length(self) -> int:
        """Characters in all, thoughts that are folded away among them."""
        return self._all.length

    def cut(self, length: int) -> None:
        """Forget what stands behind the first ``length`` characters, which end with a line."""
        self._everything.cut(length)
        self._all.cut(length)
        if self.folded:
            self._wrap_all()
        else:
            self.rows.cut(self.rows.at(length) + 1)

    def _show(self, spans: Spans) -> str:
        """Mark what is left of the text where thoughts are folded away; returns it."""
        self.marks.extend(spans)
        return "".join(spans.texts)

    def pieces(self, row: Row) -> Iterator[tuple[str, Mark]]:
        for start, end, mark in self.marks.between(row.start, row.start + len(row.text)):
            yield row.text[start - row.start : end - row.start], mark

    def piece_at(self, index: int, column: int) -> tuple[Mark, int] | None:
        """What stands at a cell of row ``index``, and which of the pieces in this style it is, counted from 0; None
        behind its text."""
        if not 0 <= index < len(self.rows):
            return None
        used, row = 0, self.rows[index]
        offset = row.start
        for text, mark in self.pieces(row):
            used, offset = used + width_of(text), offset + len(text)
            if column < used:
                return mark, self.marks.count(mark.style, offset) - 1
        return None

    def row_of(self, offset: int) -> int:
        """The row that holds a character."""
        return self.rows.at(offset)

    def row_showing(self, offset: int) -> int:
        """The row that shows a character of the whole text; the one before it where that is folded away."""
        return self.row_of(self._all.shown_before(offset, "thought") if self.folded else offset)

    def resize(self, width: int) -> None:
        """Wrap everything again."""
        self.width = max(width, 1)
        self._wrap_all()

    def fold(self, folded: bool) -> None:
        """Leave thoughts out, or show them again."""
        self.folded = folded
        self._wrap_all()

    def _wrap_all(self) -> None:
        text = str(self._everything)
        self.marks = self._all
        self._text = GrowingText()
        if self.folded:
            self.marks = Marks()
            text = self._show(self._all.spans(text).without("thought"))
        else:
            self._everything = self._text
        self.rows = WrappedRows(self._text)
        self._wrap(text)

    def _wrap(self, text: str) -> None:
        """Put ``text`` at the end of what is shown."""
        rows = self.rows
        before, _, start = rows[-1]
        self._text.append(text)
        *ended, last = (before + text).split("\n")
        for line in ended:
            *soft, rest = wrap(line, self.width)
            for row in soft:
                start += len(row)
                rows.begin(start, soft=True)
            start += len(rest) + 1
            rows.begin(start, soft=False)
        for row in wrap(last, self.width)[:-1]:
            start += len(row)
            rows.begin(start, soft=True)
