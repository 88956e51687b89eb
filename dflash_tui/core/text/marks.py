"""What every piece of a text is: who wrote it, and which token of which turn it is."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import NamedTuple

from .spans import TOKEN_STYLES, Labels, Spans, TokenStyle


class Mark(NamedTuple):
    """What a piece of text is."""

    style: TokenStyle
    turn: int
    """The turn it belongs to; 0 before the first answer."""
    token: int | None
    """Which of that turn's emitted tokens it is; None for what no model wrote."""


class Marks:
    """Who wrote which characters, in a few bytes per token: pieces in the order of the text."""

    def __init__(self) -> None:
        self._starts = array("I")
        self._labels = Labels()
        self.length = 0
        """How many characters there are in all."""

    def extend(self, spans: Spans) -> None:
        """Add pieces at the end."""
        starts = list(accumulate(map(len, spans.texts), initial=self.length))
        self.length = starts.pop()
        self._starts.fromlist(starts)
        self._labels.extend(spans.labels)

    def cut(self, length: int) -> None:
        """Forget the pieces behind the first ``length`` characters."""
        num_left = bisect_left(self._starts, length)
        del self._starts[num_left:]
        self._labels.cut(num_left)
        self.length = length

    def count(self, style: TokenStyle, before: int) -> int:
        """How many pieces in this style begin before character number ``before``."""
        return self._labels.styles.count(TOKEN_STYLES.index(style), 0, bisect_left(self._starts, before))

    def shown_before(self, offset: int, without: TokenStyle) -> int:
        """How many characters stand before one, those in a style that is left out not counted."""
        pieces = self.between(0, offset)
        return sum(stop - start for start, stop, mark in pieces if mark.style != without)

    def between(self, start: int, end: int) -> Iterator[tuple[int, int, Mark]]:
        """The pieces of a range of characters: first one, the one behind the last, and what they are."""
        index = max(bisect_right(self._starts, start) - 1, 0)
        while start < end:
            stop = self._starts[index + 1] if index + 1 < len(self._starts) else self.length
            if stop > start:
                yield start, min(stop, end), self._mark(index)
            start, index = max(stop, start), index + 1

    def _mark(self, index: int) -> Mark:
        labels = self._labels
        token = labels.tokens[index] - 1 if labels.written[index] else None
        return Mark(TOKEN_STYLES[labels.styles[index]], labels.turns[index], token)

    def end_of(self, turn: int, tokens: int) -> int:
        """The place in the transcript, in characters, at which the token behind the first ``tokens`` of ``turn``
        begins; the transcript's length if none follows."""
        index = bisect_right(self._labels.tokens, tokens, *self._of_turn(turn))
        return self._starts[index] if index < len(self._starts) else self.length

    def start_of(self, turn: int, token: int) -> int:
        """The character at which a token begins; one that has no text begins where the next one does."""
        index = bisect_left(self._labels.tokens, token + 1, *self._of_turn(turn))
        return self._starts[index] if index < len(self._starts) else self.length

    def _of_turn(self, turn: int) -> tuple[int, int]:
        """The first of the turn's pieces, and the one behind its last."""
        return bisect_left(self._labels.turns, turn), bisect_right(self._labels.turns, turn)

    def spans(self, text: str) -> Spans:
        edges = pairwise((*self._starts, self.length))
        return Spans([text[start:stop] for start, stop in edges], self._labels)
