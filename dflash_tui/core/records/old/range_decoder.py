"""The range coder of traces 3 to 7 (FORMAT.md), backwards: symbols in as few bits as they were surprising, by how often
they came before in the same place."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

TOP, FULL = 2**24, 2**32
"""The coder's range is kept between these two."""
MOST = 2**12
"""What all symbols of a place may count together: then every count is halved, so that the latest weigh most."""
RAW_BITS = 8
SMALL = 4
"""Numbers below are symbols of their own; others share one by their length and their second bit."""
SYMBOLS, SHORT = SMALL + 2 * 54, SMALL + 2 * 8
"""How many symbols there are for numbers of up to 56 bits, and for numbers below 1024."""
EVEN = (*(1,) * SMALL, *(1 + isqrt(2 << symbol // 2) for symbol in range(SHORT - SMALL)))
"""First counts of numbers of which many are large: those that share a symbol count for more."""


class CutShort(Exception):
    """The bytes end before what they hold does."""


class Counts:
    """How often each symbol came in one place."""

    __slots__ = ("_seen", "counts", "total")

    def __init__(self, first: Sequence[int], seen: int = 40) -> None:
        """``first``: what each symbol counts for before it came, at least 1; ``seen``: each time that it comes."""
        self.counts, self.total, self._seen = list(first), sum(first), seen

    def learn(self, symbol: int) -> None:
        self.counts[symbol] += self._seen
        self.total += self._seen
        if self.total > MOST:
            self.counts = [(count + 1) >> 1 for count in self.counts]
            self.total = sum(self.counts)


class RangeDecoder:
    """Decodes symbols and plain bits out of one block of bytes."""

    def __init__(self, data: bytes, whole: bool) -> None:
        """``whole``: nothing of the block is missing, and zeros follow it. Else reading on raises :class:`CutShort`."""
        self._data, self._next, self._whole = data, 0, whole
        self._code, self._range = 0, FULL - 1
        for _ in range(4):
            self._code = self._code << 8 | self._byte()

    def symbol(self, counts: Counts) -> int:
        part = self._range // counts.total
        place = min(self._code // part, counts.total - 1)
        symbol, below = 0, 0
        while place >= below + counts.counts[symbol]:
            below += counts.counts[symbol]
            symbol += 1
        self._code -= part * below
        self._range = part * counts.counts[symbol]
        if self._range < TOP:
            self._shift()
        counts.learn(symbol)
        return symbol

    def raw(self, width: int) -> int:
        value = 0
        while width:
            width -= (bits := min(width, RAW_BITS))
            self._range >>= bits
            found = min(self._code // self._range, (1 << bits) - 1)
            self._code -= found * self._range
            value = value << bits | found
            if self._range < TOP:
                self._shift()
        return value

    def _shift(self) -> None:
        while self._range < TOP:
            self._code = (self._code << 8 | self._byte()) & FULL - 1
            self._range <<= 8

    def _byte(self) -> int:
        self._next += 1
        if self._next <= len(self._data):
            return self._data[self._next - 1]
        if not self._whole:
            raise CutShort
        return 0


def get(decoder: RangeDecoder, counts: Counts) -> int:
    """Decode a number: small ones are symbols; of others a symbol says the length, and the lower bits follow."""
    symbol = decoder.symbol(counts)
    if symbol < SMALL:
        return symbol
    rest, second = (symbol - SMALL) // 2 + 1, symbol & 1
    return (2 | second) << rest | decoder.raw(rest)
