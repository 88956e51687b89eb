"""What every piece of a text is: who wrote it, and which token of which turn it is."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple, get_args

from .reducer import Look, Span

_LOOKS: tuple[Look, ...] = get_args(Look)
_CODES = {look: code for code, look in enumerate(_LOOKS)}
_THOUGHT = _CODES["thought"]


class Mark(NamedTuple):
    """What a piece of text is."""

    look: Look
    turn: int
    """The turn it belongs to; 0 before the first answer."""
    token: int | None
    """Which of that turn's emitted tokens it is; None for what no model wrote."""


class Marks:
    """Who wrote which characters, in a few bytes per token: pieces in the order of the text."""

    def __init__(self) -> None:
        self._starts = array("I")
        self._looks = bytearray()
        self._turns = array("I")
        self._tokens = array("I")
        """Tokens of the turn up to and with this piece, so that pieces of one turn are in order."""
        self._written = bytearray()
        """1 where the piece is a token, 0 where no model wrote it."""
        self.length = 0
        """Characters in all."""

    def extend(self, lengths: Sequence[int], spans: Sequence[Span]) -> None:
        """Pieces at the end: so many characters each, and whose they are."""
        *starts, self.length = accumulate(lengths, initial=self.length)
        self._starts.extend(starts)
        self._looks.extend([_CODES[span.look] for span in spans])
        self._written.extend([span.token is not None for span in spans])
        turns, tokens = [], []
        turn, behind = (self._turns[-1], self._tokens[-1]) if self._turns else (None, 0)
        for span in spans:
            if span.token is not None:
                turn, behind = span.turn, span.token + 1
            elif turn is None:
                turn = span.turn
            turns.append(turn)
            tokens.append(behind)
        self._turns.extend(turns)
        self._tokens.extend(tokens)

    def between(self, start: int, end: int) -> Iterator[tuple[int, int, Mark]]:
        """The pieces of a range of characters: first one, the one behind the last, and what they are."""
        place = max(bisect_right(self._starts, start) - 1, 0)
        while start < end:
            stop = self._starts[place + 1] if place + 1 < len(self._starts) else self.length
            if stop > start:
                yield start, min(stop, end), self._mark(place)
            start, place = max(stop, start), place + 1

    def _mark(self, place: int) -> Mark:
        token = self._tokens[place] - 1 if self._written[place] else None
        return Mark(_LOOKS[self._looks[place]], self._turns[place], token)

    def end_of(self, turn: int, tokens: int) -> int:
        """Where the first ``tokens`` tokens of ``turn`` end, with what stands right behind them."""
        first, last = bisect_left(self._turns, turn), bisect_right(self._turns, turn)
        place = bisect_right(self._tokens, tokens, first, last)
        return self._starts[place] if place < len(self._starts) else self.length

    def start_of(self, turn: int, token: int) -> int:
        """Where a token begins; one that has no text begins where the next one does."""
        first, last = bisect_left(self._turns, turn), bisect_right(self._turns, turn)
        place = bisect_left(self._tokens, token + 1, first, last)
        return self._starts[place] if place < len(self._starts) else self.length

    def thoughts(self) -> Iterator[tuple[int, int, bool, Span]]:
        """Every piece as (start, end, is it a thought, a span without text)."""
        for place, start in enumerate(self._starts):
            stop = self._starts[place + 1] if place + 1 < len(self._starts) else self.length
            mark = self._mark(place)
            yield start, stop, self._looks[place] == _THOUGHT, Span("", mark.look, mark.turn, mark.token)
