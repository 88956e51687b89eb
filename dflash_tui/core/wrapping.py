"""Text for a grid of cells: control characters made harmless, lines wrapped by cell width, tail first.

Appending to a document wraps only its last row again: greedy wrapping never moves a row before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from rich.cells import cell_len, split_graphemes

from .reducer import Look, Span

TAB = "    "
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls: ESC above all
    "\u200e\u200f\u2028-\u202e\u2066-\u2069"  # separators and bidirectional overrides reorder what follows
    "\ud800-\udfff]"  # lone surrogates can't be written to a terminal
)
_WORD = re.compile(r"\S*\s*")


def sanitise(text: str) -> str:
    """``text`` with nothing in it that a terminal would act on. Newlines stay, a tab becomes four spaces."""
    text = text.replace("\r\n", "\n").replace("\t", TAB)
    return _UNSAFE.sub(_replacement, text) if _UNSAFE.search(text) else text


def _replacement(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code == 0x0D:
        return ""
    return chr(0x2400 + code) if code < 0x20 else "�"


def width_of(text: str) -> int:
    """Cells that ``text`` takes; it holds no control characters."""
    return len(text) if text.isascii() else cell_len(text)


class Row(NamedTuple):
    """One row of cells."""

    spans: tuple[Span, ...]
    soft: bool
    """The row goes on in the next one: it was wrapped, not ended by a newline."""

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)


@dataclass(slots=True)
class _Word:
    """A run without a break inside, and the blanks behind it, across any number of looks."""

    spans: list[Span]
    blank: bool = False

    def width(self) -> int:
        return width_of("".join(span.text for span in self.spans).rstrip())


def wrap(spans: list[Span], width: int) -> list[Row]:
    """Wrap one line (no newlines in it) to ``width`` cells. Blanks hang over the edge rather than start a row."""
    if not spans:
        return [Row((), soft=False)]
    rows: list[Row] = []
    row: list[Span] = []
    used = 0
    for word in _words(spans):
        size = word.width()
        if row and used + size > width:
            rows.append(Row(_merge(row), soft=True))
            row, used = [], 0
        if size > width:
            *full, rest = _chop(word.spans, width)
            rows.extend(Row(_merge(part), soft=True) for part in full)
            word = _Word(rest)
        row += word.spans
        used += width_of("".join(span.text for span in word.spans))
    rows.append(Row(_merge(row), soft=False))
    return rows


def _words(spans: list[Span]) -> list[_Word]:
    """Split at the end of every run of blanks."""
    words: list[_Word] = []
    for text, look in ((span.text, span.look) for span in spans):
        for part in _WORD.findall(text):
            if not part:
                continue
            starts_blank = part[0].isspace()
            if words and (not words[-1].blank or starts_blank):
                words[-1].spans.append(Span(part, look))
            else:
                words.append(_Word([Span(part, look)]))
            words[-1].blank = part[-1].isspace()
    return words


def _chop(spans: list[Span], width: int) -> list[list[Span]]:
    """Break a word that is longer than a row, between characters as a reader sees them."""
    rows: list[list[Span]] = [[]]
    used = 0
    for span in spans:
        for start, end, size in split_graphemes(span.text)[0]:
            if used + size > width and rows[-1] and not span.text[start:end].isspace():
                rows.append([])
                used = 0
            rows[-1].append(Span(span.text[start:end], span.look))
            used += size
    return rows


def _merge(spans: list[Span]) -> tuple[Span, ...]:
    """Join neighbours of one look: a row becomes as few segments as it can."""
    merged: list[Span] = []
    pieces: list[str] = []
    look: Look | None = None
    for span in spans:
        if span.look != look and pieces and look is not None:
            merged.append(Span("".join(pieces), look))
            pieces = []
        look = span.look
        pieces.append(span.text)
    if pieces and look is not None:
        merged.append(Span("".join(pieces), look))
    return tuple(merged)


class Document:
    """A growing text as rows of ``width`` cells."""

    def __init__(self, width: int) -> None:
        self.width = max(width, 1)
        self.rows: list[Row] = [Row((), soft=False)]
        self.folded = False
        """Thoughts are left out; they come back when unfolded."""
        self._source: list[Span] = []

    def append(self, spans: list[Span]) -> int:
        """Add spans at the end; returns the first row that changed."""
        changed = len(self.rows) - 1
        clean = [Span(sanitise(span.text), span.look) for span in spans]
        self._source += clean
        self._wrap(clean)
        return changed

    def resize(self, width: int) -> None:
        """Wrap everything again."""
        self.width = max(width, 1)
        self._wrap_all()

    def fold(self, folded: bool) -> None:
        """Leave thoughts out, or show them again."""
        self.folded = folded
        self._wrap_all()

    def _wrap_all(self) -> None:
        self.rows = [Row((), soft=False)]
        self._source = list(_merge(self._source))
        self._wrap(self._source)

    def clear(self) -> None:
        self._source.clear()
        self.rows = [Row((), soft=False)]

    def _wrap(self, spans: list[Span]) -> None:
        line = list(self.rows.pop().spans)
        for span in spans:
            if self.folded and span.look == "thought":
                continue
            first, *others = span.text.split("\n")
            line.append(Span(first, span.look))
            for text in others:
                self.rows += wrap(_nonempty(line), self.width)
                line = [Span(text, span.look)]
        self.rows += wrap(_nonempty(line), self.width)


def _nonempty(spans: list[Span]) -> list[Span]:
    return [span for span in spans if span.text]
