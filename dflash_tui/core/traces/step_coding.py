"""Packed steps in fewer bits: the fields of ``packing``, coded by kind (FORMAT.md). One walk serves both directions: a
field is read from packed bytes and coded, or decoded and packed again."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Protocol

from ..rounds.numbers import PackingError, put_number, signed, unsigned
from ..rounds.packing import CHOICE, COUNTS, HAS_ID, HAS_TEXT, NEW_CHOICE, PARTIAL, PLACE, SETTINGS, SOURCED, TREE
from .coding import EVEN, SHORT, SYMBOLS, Counts, Decoder, Encoder, get, put

MAX_LIST, MAX_PIECE_BYTES = 256, 2**16
"""Of a step's draft, or of its answer; and of a token's text. No honest one has so many."""
SAME, FOLLOWS, RECENT, OLDER, NEW = range(5)
"""How a piece is told: as the discarded draft that stood there, as what came after the piece before it the last time,
as one of the latest, by its place in the table, or as one that was never met."""
CHOICES_APART = 4
"""So many choices of a position have chances of their own."""
SOURCES_APART = 3
"""So many sources have chances of their own of what comes next."""
NEAR = 256
"""How many different pieces are the latest."""
HOWS, BYTES = 5, 256
WORDS = Path(__file__).with_name("words.json")
"""Texts that pieces often have, so that they need no spelling."""
CHANCES = ("doubt", "given", "own doubt", "choice doubt", "kept doubt")
SMALL_NUMBERS = (
    "head",
    "drafted",
    "judged",
    "kept",
    "own",
    "verdict",
    "tree",
    "branch",
    "kept of a tree",
    "kept choice",
    "known",
    "source",
)
"""Kinds of numbers below 1024."""
Kind = tuple[str, int]
"""What a number means, and what it depends on."""


@cache
def words() -> tuple[bytes, ...]:
    """Those of ``WORDS``."""
    return tuple(word.encode() for word in json.loads(WORDS.read_bytes()))


@cache
def _numbers_of_words() -> dict[bytes, int]:
    """Counted from 1."""
    return {word: number for number, word in enumerate(words(), start=1)}


class Fields(Protocol):
    """The fields of one step, in their order, on their way from one form to the other."""

    def number(self, kind: Kind, expected: int = 0) -> int:
        """A number; where something is ``expected``, it is near that."""

    def piece(self, guesses: tuple[int | None, int | None]) -> int:
        """A reference into the table of pieces; ``guesses``: what ``SAME`` and ``FOLLOWS`` would stand for."""

    def data(self, size: int) -> bytes:
        """Bytes of which nothing is known."""

    def text(self) -> bytes:
        """How many bytes, and the text."""


class StepModel:
    """What one step tells about the next. Coder and decoder each have one, and keep it in step."""

    def __init__(self) -> None:
        self._counts: dict[Kind, Counts] = {}
        self.pieces = 0
        """How many are in the table."""
        self.recent: list[int] = []
        """The ``NEAR`` latest references, each once, the latest first."""
        self._follower: dict[int, int] = {}
        self._before = -1
        self._discarded: list[int] = []
        self._drafted = 0
        self._partial = False

    def counts(self, kind: Kind) -> Counts:
        """How often each symbol came for this kind."""
        found = self._counts.get(kind)
        if found is None:
            found = self._counts[kind] = _first_counts(kind[0])
        return found

    def walk(self, fields: Fields) -> None:
        """Through one step."""
        number = fields.number
        head = number(("head", 0))
        self._partial = bool(head & PARTIAL)
        if head & PLACE:
            for place in range(3):
                number(("place", place))
        if head & SETTINGS:
            number(("settings", 0))
            fields.data(8)
        if head & COUNTS:
            number(("counts", 0))
            number(("counts", 1))
        if head & CHOICE:
            for place in range(3):
                number(("choice", place))
        for place in range(4):
            number(("times", 2 * place + (self._drafted > 0)))
        guesses = self._tokens(fields, bool(head & TREE))
        if head & SOURCED:
            before = 0
            for _ in range(guesses):
                before = number(("source", min(before, SOURCES_APART)))
            number(("match", 0))
            number(("match", 1))

    def _tokens(self, fields: Fields, has_tree: bool) -> int:
        """How many were drafted, those of a tree counted by themselves."""
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
        branches = 0
        if has_tree:
            branches, kept = self._tree(fields, anchor, draft)
        else:
            kept = _length(number(("kept", 0), judged))
            self._before = draft[kept - 1] if 0 < kept <= len(draft) else anchor
        own = _length(number(("own", 0)))
        for _ in range(own):
            number(("verdict", 0))
            self._piece(fields, None)
            number(("own doubt", 0))
        self._discarded = draft[kept + own :]
        return len(draft) + branches

    def _tree(self, fields: Fields, anchor: int, draft: list[int]) -> tuple[int, int]:
        """A step's tree and what was kept: how many tokens of each. Nonsense counts for the newest, and the
        unpacker refuses it."""
        number = fields.number
        told = {(depth, 0): piece for depth, piece in enumerate(draft, 1)}
        rows, trunk = [(0, anchor)], True
        children: dict[tuple[int, int], int] = {}
        for row in range(_length(number(("tree", 0)))):
            parent = number(("parent", trunk), row if trunk else 0)
            trunk = trunk and parent == row
            depth, self._before = rows[parent] if parent < len(rows) else rows[0]
            branch = number(("branch", parent == row))
            place = (depth + 1, branch >> 1)
            if branch & NEW_CHOICE:
                told[place] = self._piece(fields, None)
                number(("choice doubt", min(branch >> 1, CHOICES_APART)))
            children[parent, branch >> 1] = len(rows)
            rows.append((depth + 1, told.get(place, anchor)))
        last, kept = 0, _length(number(("kept of a tree", 0)))
        for _ in range(kept):
            choice = number(("kept choice", 0))
            if choice:
                number(("kept doubt", 0))
            last = children.get((last, choice), 0)
        self._before = rows[last][1]
        return len(rows) - 1, kept

    def _piece(self, fields: Fields, same: int | None) -> int:
        follows = self._follower.get(self._before)
        reference = fields.piece((same, follows if follows != same else None))
        if reference == self.pieces:
            known = fields.number(("known", 0)) if self._partial else HAS_ID | HAS_TEXT
            if known & HAS_ID:
                fields.number(("id", 0))
            if known & HAS_TEXT:
                fields.text()
            self.pieces += 1
        self._follower[self._before] = self._before = reference
        if reference in self.recent:
            self.recent.remove(reference)
        self.recent.insert(0, reference)
        del self.recent[NEAR:]
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
        if reference in guesses:
            how = guesses.index(reference)
        elif reference == model.pieces:
            how = NEW
        else:
            how = RECENT if reference in model.recent else OLDER
        self._encoder.symbol(model.counts(("how", _choices(guesses))), how)
        if how == RECENT:
            self._put(("ago", 0), model.recent.index(reference))
        elif how == OLDER:
            self._put(("older", 0), reference)
        return reference

    def data(self, size: int) -> bytes:
        data = self._packed[self._next : self._next + size]
        self._next += size
        for byte in data:
            self._encoder.symbol(self._model.counts(("any byte", 0)), byte)
        return data

    def text(self) -> bytes:
        size = self._plain()
        text = self._packed[self._next : self._next + size]
        self._next += size
        word = _numbers_of_words().get(text, 0)
        self._put(("word", 0), word)
        if not word:
            self._put(("letters", 0), size)
            before = 0
            for byte in text:
                self._encoder.symbol(self._model.counts(("byte", _sort(before))), byte)
                before = byte
        return text

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
        how = self._decoder.symbol(model.counts(("how", _choices(guesses))))
        reference: int | None
        if how == NEW:
            reference = model.pieces
        elif how == RECENT:
            ago = get(self._decoder, model.counts(("ago", 0)))
            reference = model.recent[ago] if ago < len(model.recent) else None
        elif how == OLDER:
            older = get(self._decoder, model.counts(("older", 0)))
            reference = older if older < model.pieces else None
        else:
            reference = guesses[how]
        if reference is None:
            raise PackingError("a step refers to a piece that there is not")
        put_number(self.packed, reference)
        return reference

    def data(self, size: int) -> bytes:
        data = bytes(self._decoder.symbol(self._model.counts(("any byte", 0))) for _ in range(size))
        self.packed += data
        return data

    def text(self) -> bytes:
        word = get(self._decoder, self._model.counts(("word", 0)))
        if word > len(words()):
            raise PackingError("a piece is a word that there is not")
        text = words()[word - 1] if word else self._spelled()
        put_number(self.packed, len(text))
        self.packed += text
        return text

    def _spelled(self) -> bytes:
        size = get(self._decoder, self._model.counts(("letters", 0)))
        if size > MAX_PIECE_BYTES:
            raise PackingError("a piece is longer than pieces are")
        text, before = bytearray(), 0
        for _ in range(size):
            before = self._decoder.symbol(self._model.counts(("byte", _sort(before))))
            text.append(before)
        return bytes(text)


def _first_counts(name: str) -> Counts:
    """Those of a kind of which nothing was seen yet."""
    if name in CHANCES:
        return Counts(EVEN, seen=20)
    if name == "how":
        return Counts((1,) * HOWS)
    if name in ("byte", "any byte"):
        return Counts((1,) * BYTES)
    return Counts((1,) * (SHORT if name in SMALL_NUMBERS else SYMBOLS))


def _length(count: int) -> int:
    if count > MAX_LIST:
        raise PackingError("a list is longer than lists are")
    return count


def _choices(guesses: tuple[int | None, int | None]) -> int:
    """Which guesses there are."""
    same, follows = guesses
    return (same is not None) | (follows is not None) << 1


def _doubtful(doubt: int) -> int:
    """Sorts of places that a chance can stand at, by how unsure the drafter was."""
    return (doubt >= 20) + (doubt >= 200) + (doubt >= 600)


def _sort(byte: int) -> int:
    """Of a character: what follows a vowel is another thing than what follows a blank."""
    if byte in b"aeiou":
        return 1
    if byte == 32:
        return 2
    if 97 <= byte <= 122:
        return 3
    return 4 if 65 <= byte <= 90 else 5 if 48 <= byte <= 57 else 6 if byte else 0
