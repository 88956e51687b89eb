"""What every piece of a text is: who wrote it, and which token of which turn it is."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate, compress, pairwise
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
        kept = bisect_left(self._starts, length)
        del self._starts[kept:]
        self._labels.cut(kept)
        self.length = length

    def count(self, style: TokenStyle, before: int) -> int:
        """How many pieces in this style begin before character number ``before``."""
        return self._labels.styles.count(TOKEN_STYLES.index(style), 0, bisect_left(self._starts, before))

    def shown_before(self, offset: int, without: TokenStyle) -> int:
        """How many characters stand before one, those in a style that is left out not counted."""
        pieces = self.between(0, offset)
        return sum(stop - start for start, stop, mark in pieces if mark.style != without)

    def relabel(self, turn: int, spans: Spans) -> None:
        """The turn's tokens as other pieces of the same text; what no model wrote stays. A text that is not the same
        changes nothing."""
        first, behind = self._of_turn(turn)
        written = self._labels.written[first:behind]
        edges = [*self._starts[first:behind], *self._starts[behind : behind + 1]]
        edges += [self.length] * (len(written) + 1 - len(edges))
        sizes = [stop - start for start, stop in compress(pairwise(edges), written)]
        told = [(len(text), number) for number, text in enumerate(spans.texts) if spans.labels.written[number] and text]
        if sum(sizes) != sum(size for size, _ in told):
            return
        starts, order = array("I"), list[int]()
        ahead, left, number = iter(told), 0, -1
        for place, (start, stop) in enumerate(pairwise(edges)):
            if not written[place]:
                starts.append(start)
                order.append(len(spans) + first + place)
                continue
            begins = place > 0 and not written[place - 1]
            while start < stop:
                if begins or not left:
                    left, number = (left, number) if left else next(ahead)
                    starts.append(start)
                    order.append(number)
                    begins = False
                taken = min(left, stop - start)
                start, left = start + taken, left - taken
        self._starts = self._starts[:first] + starts + self._starts[behind:]
        labels, rest = self._labels.part(0, first), self._labels.part(behind, len(self._labels.styles))
        known = spans.labels.part(0, len(spans))
        known.extend(self._labels)
        labels.extend(known.at(order))
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
        """The place in the transcript, in characters, at which the token behind the first ``tokens`` of ``turn``
        begins; the transcript's length if none follows."""
        place = bisect_right(self._labels.tokens, tokens, *self._of_turn(turn))
        return self._starts[place] if place < len(self._starts) else self.length

    def start_of(self, turn: int, token: int) -> int:
        """The character at which a token begins; one that has no text begins where the next one does."""
        place = bisect_left(self._labels.tokens, token + 1, *self._of_turn(turn))
        return self._starts[place] if place < len(self._starts) else self.length

    def _of_turn(self, turn: int) -> tuple[int, int]:
        """The first of the turn's pieces, and the one behind its last."""
        return bisect_left(self._labels.turns, turn), bisect_right(self._labels.turns, turn)

    def spans(self, text: str) -> Spans:
        """All pieces with their texts; ``text`` is the whole."""
        edges = pairwise((*self._starts, self.length))
        return Spans([text[start:stop] for start, stop in edges], self._labels)
