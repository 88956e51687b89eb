"""Packed steps in fewer bits: the fields of ``packing``, each coded by what is known about its kind (FORMAT.md).

One walk through the fields serves both directions: what it asks for is read from packed bytes and coded, or decoded and
packed again.
"""

from __future__ import annotations

from array import array
from typing import Protocol

from .coding import SYMBOLS, Counts, Decoder, Encoder, get, put
from .packing import CHOICE, COUNTS, PLACE, SETTINGS, PackingError, put_number, signed, unsigned

MAX_LIST, MAX_PIECE_BYTES = 256, 2**16
"""Of a step's draft, or of its answer; and of a token's text. No honest one has so many."""
SAME, FOLLOWS, EARLIER, NEW = range(4)
"""How a piece is told: as the discarded draft that stood there, as what came after the piece before it the last time,
as the one so many pieces ago, or as one that was never met."""
HOWS, BYTES = 4, 256
DOUBTS = 6
"""Sorts of places that a chance can stand at, by how unsure a drafter was: see :func:`_doubtful`."""
Kind = tuple[str, int]
"""What a number means, and what it depends on."""


class Fields(Protocol):
    """The fields of one step, in their order, on their way from one form to the other."""

    def number(self, kind: Kind, expected: int = 0) -> int:
        """A number; where something is ``expected``, it is near that."""

    def piece(self, guesses: tuple[int | None, int | None]) -> int:
        """A reference into the table of pieces; ``guesses``: what ``SAME`` and ``FOLLOWS`` would stand for."""

    def data(self, size: int, text: bool) -> bytes:
        """Bytes."""


class StepModel:
    """What one step tells about the next. Coder and decoder each have one, and keep it in step."""

    def __init__(self) -> None:
        self._counts: dict[Kind, Counts] = {}
        self.met = array("I")
        """Every reference so far, in order."""
        self.last: dict[int, int] = {}
        """Of every reference, the place in ``met`` where it was last."""
        self._follower: dict[int, int] = {}
        self._before = -1
        self._discarded: list[int] = []
        self._drafted = 0

    def counts(self, kind: Kind, symbols: int = SYMBOLS) -> Counts:
        """How often each symbol came for this kind."""
        found = self._counts.get(kind)
        if found is None:
            found = self._counts[kind] = Counts(symbols)
        return found

    def walk(self, fields: Fields) -> None:
        """Through one step."""
        number = fields.number
        head = number(("head", 0))
        if head & PLACE:
            for place in range(3):
                number(("place", place))
        if head & SETTINGS:
            number(("settings", 0))
            fields.data(8, text=False)
        if head & COUNTS:
            number(("counts", 0))
            number(("counts", 1))
        if head & CHOICE:
            for place in range(3):
                number(("choice", place))
        for place in range(4):
            number(("times", place))
        self._tokens(fields)

    def _tokens(self, fields: Fields) -> None:
        number = fields.number
        self._drafted = _length(number(("drafted", 0), self._drafted))
        anchor = self._before
        guesses = [*self._discarded, *[None] * self._drafted][: self._drafted]
        draft = [self._piece(fields, guess) for guess in guesses]
        doubts, doubt = [], 0
        for _ in draft:
            doubt = number(("doubt", _doubtful(doubt)))
            doubts.append(doubt)
        judged = _length(number(("judged", 0)))
        for place in range(judged):
            number(("given", _doubtful(doubts[place]) if place < len(doubts) else 0))
        kept = _length(number(("kept", 0), judged))
        own = _length(number(("own", 0)))
        self._before = draft[kept - 1] if 0 < kept <= len(draft) else anchor
        for _ in range(own):
            number(("verdict", 0))
            self._piece(fields, None)
            number(("own doubt", 0))
        self._discarded = draft[kept + own :]

    def _piece(self, fields: Fields, same: int | None) -> int:
        follows = self._follower.get(self._before)
        reference = fields.piece((same, follows if follows != same else None))
        if reference not in self.last:
            fields.number(("id", 0))
            fields.data(fields.number(("text", 0)), text=True)
        self._follower[self._before] = self._before = reference
        self.last[reference] = len(self.met)
        self.met.append(reference)
        return reference


class Coding:
    """Packed bytes into a block."""

    def __init__(self, model: StepModel, encoder: Encoder, packed: bytes) -> None:
        self._model, self._encoder, self._packed, self._next = model, encoder, packed, 0

    def number(self, kind: Kind, expected: int = 0) -> int:
        value = self._plain()
        self._put(kind, unsigned(value - expected) if expected else value)
        return value

    def piece(self, guesses: tuple[int | None, int | None]) -> int:
        model, reference = self._model, self._plain()
        known = reference in model.last
        how = guesses.index(reference) if reference in guesses else EARLIER if known else NEW
        self._encoder.symbol(model.counts(("how", _choices(guesses)), HOWS), how)
        if how == EARLIER:
            self._put(("ago", 0), len(model.met) - 1 - model.last[reference])
        return reference

    def data(self, size: int, text: bool) -> bytes:
        data = self._packed[self._next : self._next + size]
        self._next += size
        before = 0
        for byte in data:
            self._encoder.symbol(self._model.counts(("byte", _sort(before) if text else -1), BYTES), byte)
            before = byte
        return data

    def _put(self, kind: Kind, number: int) -> None:
        put(self._encoder, self._model.counts(kind), number)

    def _plain(self) -> int:
        value = shift = 0
        while True:
            byte = self._packed[self._next]
            self._next += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value


class Decoding:
    """A block into packed bytes."""

    def __init__(self, model: StepModel, decoder: Decoder) -> None:
        self._model, self._decoder = model, decoder
        self.packed = bytearray()

    def number(self, kind: Kind, expected: int = 0) -> int:
        value = get(self._decoder, self._model.counts(kind))
        if expected:
            value = signed(value) + expected
        if value < 0:
            raise PackingError("a number is out of range")
        put_number(self.packed, value)
        return value

    def piece(self, guesses: tuple[int | None, int | None]) -> int:
        model = self._model
        how = self._decoder.symbol(model.counts(("how", _choices(guesses)), HOWS))
        reference: int | None = len(model.last) if how == NEW else None
        if how == EARLIER:
            ago = get(self._decoder, model.counts(("ago", 0)))
            if ago >= len(model.met):
                raise PackingError("a step refers to a piece before the first one")
            reference = model.met[-1 - ago]
        elif how < EARLIER:
            reference = guesses[how]
        if reference is None:
            raise PackingError("a step refers to a piece that nobody can guess")
        put_number(self.packed, reference)
        return reference

    def data(self, size: int, text: bool) -> bytes:
        if size > MAX_PIECE_BYTES:
            raise PackingError("a piece is longer than pieces are")
        data, before = bytearray(), 0
        for _ in range(size):
            before = self._decoder.symbol(self._model.counts(("byte", _sort(before) if text else -1), BYTES))
            data.append(before)
        self.packed += data
        return bytes(data)


def _length(count: int) -> int:
    if count > MAX_LIST:
        raise PackingError("a list is longer than lists are")
    return count


def _choices(guesses: tuple[int | None, int | None]) -> int:
    """Which guesses there are."""
    same, follows = guesses
    return (same is not None) | (follows is not None) << 1


def _doubtful(doubt: int) -> int:
    return min(doubt.bit_length() >> 1, DOUBTS - 1)


def _sort(byte: int) -> int:
    """Of a character: what follows a vowel is another thing than what follows a blank."""
    if byte in b"aeiou":
        return 1
    if byte == 32:
        return 2
    if 97 <= byte <= 122:
        return 3
    return 4 if 65 <= byte <= 90 else 5 if 48 <= byte <= 57 else 6 if byte else 0
