"""A range coder (FORMAT.md): symbols in as few bits as they are surprising, by how often they came before in the same
place. Nothing is looked ahead, so any prefix can be read."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

TOP, FULL = 2**24, 2**32
"""The range is kept between these."""
MOST = 2**12
"""What all symbols of a place may count together: then every count is halved, so that the latest weigh most."""
RAW_BITS = 8
SMALL = 4
"""Numbers below are symbols of their own; others share one by their length and their second bit."""
SYMBOLS, SHORT = SMALL + 2 * 54, SMALL + 2 * 8
"""For numbers of up to 56 bits, and for those below 1024."""
EVEN = (*(1,) * SMALL, *(1 + isqrt(2 << symbol // 2) for symbol in range(SHORT - SMALL)))
"""First counts of numbers of which many are large: those that share a symbol count for more."""


class Cut(Exception):
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


class Encoder:
    """Writes one block."""

    def __init__(self) -> None:
        self._out = bytearray()
        self._low, self._range = 0, FULL - 1

    def symbol(self, counts: Counts, symbol: int) -> None:
        part = self._range // counts.total
        self._low += part * sum(counts.counts[:symbol])
        self._range = part * counts.counts[symbol]
        if self._range < TOP:
            self._shift()
        counts.learn(symbol)

    def raw(self, width: int, value: int) -> None:
        """``width`` bits that nothing is known about, the highest first."""
        while width:
            width -= (bits := min(width, RAW_BITS))
            self._range >>= bits
            self._low += (value >> width & (1 << bits) - 1) * self._range
            if self._range < TOP:
                self._shift()

    def finished(self) -> bytes:
        """The block: the shortest bytes within the range, without the zeros that they could end in."""
        value = self._low
        for kept in (3, 2, 1, 0):
            step = 1 << 8 * kept
            value = -(-self._low // step) * step
            if value < self._low + self._range:
                break
        self._low = value
        for _ in range(4):
            self._carry()
        return bytes(self._out).rstrip(b"\0")

    def _shift(self) -> None:
        while self._range < TOP:
            self._carry()
            self._range <<= 8

    def _carry(self) -> None:
        """Hand out the highest byte; what is above it belongs to the bytes before."""
        if self._low >= FULL:
            self._low -= FULL
            place = len(self._out) - 1
            while self._out[place] == 255:
                self._out[place] = 0
                place -= 1
            self._out[place] += 1
        self._out.append(self._low >> 24)
        self._low = (self._low & TOP - 1) << 8


class Decoder:
    """Reads one block."""

    def __init__(self, data: bytes, whole: bool) -> None:
        """``whole``: nothing of the block is missing, and zeros follow it. Otherwise reading on raises :class:`Cut`."""
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
            raise Cut
        return 0


def put(encoder: Encoder, counts: Counts, number: int) -> None:
    """A number: what it is like, and the rest of its bits."""
    if number < SMALL:
        encoder.symbol(counts, number)
        return
    rest = number.bit_length() - 2
    encoder.symbol(counts, SMALL + 2 * (rest - 1) + (number >> rest & 1))
    encoder.raw(rest, number & (1 << rest) - 1)


def get(decoder: Decoder, counts: Counts) -> int:
    """The inverse of :func:`put`."""
    symbol = decoder.symbol(counts)
    if symbol < SMALL:
        return symbol
    rest, second = (symbol - SMALL) // 2 + 1, symbol & 1
    return (2 | second) << rest | decoder.raw(rest)
