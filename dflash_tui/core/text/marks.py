"""What every piece of a text is: who wrote it, and which token of which turn it is."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate, compress, pairwise
from typing import NamedTuple

from .spans import TOKEN_STYLES, Labels, Span, Spans, TokenStyle


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
        """Characters in all."""

    def extend(self, spans: Spans) -> None:
        """Pieces at the end."""
        starts = list(accumulate(map(len, spans.texts), initial=self.length))
        self.length = starts.pop()
        self._starts.fromlist(starts)
        self._labels.extend(spans.labels)

    def relabel(self, turn: int, spans: Spans) -> None:
        """The turn's tokens as other pieces of the same text; what no model wrote stays. A text that is not the same
        changes nothing."""
        first, behind = self._of_turn(turn)
        written = self._labels.written[first:behind]
        edges = [*self._starts[first:behind], *self._starts[behind : behind + 1]]
        edges += [self.length] * (len(written) + 1 - len(edges))
        tokens = [span for span in spans if span.token is not None and span.text]
        sizes = [stop - start for start, stop in compress(pairwise(edges), written)]
        if sum(sizes) != sum(len(span.text) for span in tokens):
            return
        pieces: list[tuple[int, Span]] = []
        ahead, left = iter(tokens), 0
        for place, (start, stop) in enumerate(pairwise(edges)):
            if not written[place]:
                pieces.append((start, Span("", TOKEN_STYLES[self._labels.styles[first + place]])))
                continue
            while start < stop:
                if not left:
                    token = next(ahead)
                    left = len(token.text)
                if not pieces or pieces[-1][1] is not token:
                    pieces.append((start, token))
                taken = min(left, stop - start)
                start, left = start + taken, left - taken
        self._starts = self._starts[:first] + array("I", (start for start, _ in pieces)) + self._starts[behind:]
        labels, rest = self._labels.part(0, first), self._labels.part(behind, len(self._labels.styles))
        for _, piece in pieces:
            labels.append(piece)
        labels.extend(rest)
        self._labels = labels

    def between(self, start: int, end: int) -> Iterator[tuple[int, int, Mark]]:
        """The pieces of a range of characters: first one, the one behind the last, and what they are."""
        place = max(bisect_right(self._starts, start) - 1, 0)
        while start < end:
            stop = self._starts[place + 1] if place + 1 < len(self._starts) else self.length
            if stop > start:
                yield start, min(stop, end), self._mark(place)
            start, place = max(stop, start), place + 1

    def _mark(self, place: int) -> Mark:
        labels = self._labels
        token = labels.tokens[place] - 1 if labels.written[place] else None
        return Mark(TOKEN_STYLES[labels.styles[place]], labels.turns[place], token)

    def end_of(self, turn: int, tokens: int) -> int:
        """Where the first ``tokens`` tokens of ``turn`` end, with what stands right behind them."""
        place = bisect_right(self._labels.tokens, tokens, *self._of_turn(turn))
        return self._starts[place] if place < len(self._starts) else self.length

    def start_of(self, turn: int, token: int) -> int:
        """Where a token begins; one that has no text begins where the next one does."""
        place = bisect_left(self._labels.tokens, token + 1, *self._of_turn(turn))
        return self._starts[place] if place < len(self._starts) else self.length

    def _of_turn(self, turn: int) -> tuple[int, int]:
        """The first of the turn's pieces, and the one behind its last."""
        return bisect_left(self._labels.turns, turn), bisect_right(self._labels.turns, turn)

    def spans(self, text: str) -> Spans:
        """All pieces with their texts; ``text`` is the whole."""
        edges = pairwise((*self._starts, self.length))
        return Spans([text[start:stop] for start, stop in edges], self._labels)
