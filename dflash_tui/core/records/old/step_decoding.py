"""The steps of traces 3 to 7 out of their range coder (FORMAT.md): each field in its order, coded by its kind, becomes
what :mod:`.unpacking` reads."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from ..numbers import RecordError
from .range_decoder import EVEN, SHORT, SYMBOLS, Counts, RangeDecoder, get
from .unpacking import CHOICE, COUNTS, HAS_ID, HAS_TEXT, NEW_CHOICE, PARTIAL, PLACE, SETTINGS, SOURCED, TREE

MAX_LIST, MAX_PIECE_BYTES = 256, 2**16
"""Most tokens of a step's draft or of its answer, and most bytes of a token's text."""
SAME, FOLLOWS, RECENT, OLDER, NEW = range(5)
"""How a piece is told: as the discarded draft that stood there, as what came after the piece before it the last time,
as one of the latest, by its place in the table, or as one that was never met."""
CHOICES_APART = 4
"""Choices of a position are counted apart up to this one."""
SOURCES_APART = 3
"""What comes behind a source is counted apart up to this one."""
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
    """The words in the file ``WORDS``, which versions 3 to 7 wrote by their numbers."""
    return tuple(word.encode() for word in json.loads(WORDS.read_bytes()))


class StepDecoder:
    """Decodes steps in the order of a file. What came before says how often each symbol of a place is to be
    expected, so none can be left out."""

    def __init__(self) -> None:
        self._decoder = RangeDecoder(b"", whole=True)
        self._packed = bytearray()
        """The step at hand, as far as it is decoded."""
        self._counts: dict[Kind, Counts] = {}
        self._pieces = 0
        """How many are in the table."""
        self._recent: list[int] = []
        """The ``NEAR`` latest references, each once, the latest first."""
        self._follower: dict[int, int] = {}
        self._before = -1
        self._discarded: list[int] = []
        self._drafted = 0
        self._partial = False

    def packed(self, decoder: RangeDecoder) -> bytes:
        """The next step of a block, packed. Raises ``CutShort`` where the bytes end, :class:`RecordError` for
        nonsense."""
        self._decoder, self._packed = decoder, bytearray()
        self._walk()
        return bytes(self._packed)

    def _counts_of(self, kind: Kind) -> Counts:
        """How often each symbol came for this kind."""
        found = self._counts.get(kind)
        if found is None:
            found = self._counts[kind] = _first_counts(kind[0])
        return found

    def _walk(self) -> None:
        """Decode the fields of one step, in their order."""
        number = self._number
        head = number(("head", 0))
        self._partial = bool(head & PARTIAL)
        if head & PLACE:
            for place in range(3):
                number(("place", place))
        if head & SETTINGS:
            number(("settings", 0))
            self._data(8)
        if head & COUNTS:
            number(("counts", 0))
            number(("counts", 1))
        if head & CHOICE:
            for place in range(3):
                number(("choice", place))
        for place in range(4):
            number(("times", 2 * place + (self._drafted > 0)))
        guesses = self._tokens(bool(head & TREE))
        if head & SOURCED:
            before = 0
            for _ in range(guesses):
                before = number(("source", min(before, SOURCES_APART)))
            number(("match", 0))
            number(("match", 1))

    def _tokens(self, has_tree: bool) -> int:
        """Decode the tokens of a step; returns how many were drafted, those of a tree counted by themselves."""
        number = self._number
        self._drafted = _length(number(("drafted", 0), self._drafted))
        anchor = self._before
        guesses = [*self._discarded, *[None] * self._drafted][: self._drafted]
        draft = [self._piece(guess) for guess in guesses]
        doubts, doubt = [], 0
        for _ in draft:
            doubt = number(("doubt", _doubtful(doubt)))
            doubts.append(doubt)
        judged = _length(number(("judged", 0)))
        for place in range(judged):
            number(("given", _doubtful(doubts[place]) if place < len(doubts) else 0))
        branches = 0
        if has_tree:
            branches, kept = self._tree(anchor, draft)
        else:
            kept = _length(number(("kept", 0), judged))
            self._before = draft[kept - 1] if 0 < kept <= len(draft) else anchor
        own = _length(number(("own", 0)))
        for _ in range(own):
            number(("verdict", 0))
            self._piece(None)
            number(("own doubt", 0))
        self._discarded = draft[kept + own :]
        return len(draft) + branches

    def _tree(self, anchor: int, draft: list[int]) -> tuple[int, int]:
        """Decode a step's tree and what was kept of it; returns the number of tokens of each. What refers to nothing
        counts as the newest token here, and the unpacker refuses it."""
        number = self._number
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
                told[place] = self._piece(None)
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

    def _piece(self, same: int | None) -> int:
        follows = self._follower.get(self._before)
        reference = self._reference((same, follows if follows != same else None))
        if reference == self._pieces:
            known = self._number(("known", 0)) if self._partial else HAS_ID | HAS_TEXT
            if known & HAS_ID:
                self._number(("id", 0))
            if known & HAS_TEXT:
                self._text()
            self._pieces += 1
        self._follower[self._before] = self._before = reference
        if reference in self._recent:
            self._recent.remove(reference)
        self._recent.insert(0, reference)
        del self._recent[NEAR:]
        return reference

    def _number(self, kind: Kind, expected: int = 0) -> int:
        value = get(self._decoder, self._counts_of(kind))
        if expected:
            value = (value >> 1 if value % 2 == 0 else -(value >> 1) - 1) + expected
        if value < 0:
            raise RecordError("a number is out of range")
        put_number(self._packed, value)
        return value

    def _reference(self, guesses: tuple[int | None, int | None]) -> int:
        how = self._decoder.symbol(self._counts_of(("how", _choices(guesses))))
        reference: int | None
        if how == NEW:
            reference = self._pieces
        elif how == RECENT:
            ago = get(self._decoder, self._counts_of(("ago", 0)))
            reference = self._recent[ago] if ago < len(self._recent) else None
        elif how == OLDER:
            older = get(self._decoder, self._counts_of(("older", 0)))
            reference = older if older < self._pieces else None
        else:
            reference = guesses[how]
        if reference is None:
            raise RecordError("a step refers to a piece that there is not")
        put_number(self._packed, reference)
        return reference

    def _data(self, size: int) -> bytes:
        data = bytes(self._decoder.symbol(self._counts_of(("any byte", 0))) for _ in range(size))
        self._packed += data
        return data

    def _text(self) -> bytes:
        word = get(self._decoder, self._counts_of(("word", 0)))
        if word > len(words()):
            raise RecordError("a piece is a word that there is not")
        text = words()[word - 1] if word else self._spelled()
        put_number(self._packed, len(text))
        self._packed += text
        return text

    def _spelled(self) -> bytes:
        size = get(self._decoder, self._counts_of(("letters", 0)))
        if size > MAX_PIECE_BYTES:
            raise RecordError("a piece is longer than pieces are")
        text, before = bytearray(), 0
        for _ in range(size):
            before = self._decoder.symbol(self._counts_of(("byte", _sort(before))))
            text.append(before)
        return bytes(text)


def _first_counts(name: str) -> Counts:
    """The counts with which a kind of symbol begins, before one was seen."""
    if name in CHANCES:
        return Counts(EVEN, seen=20)
    if name == "how":
        return Counts((1,) * HOWS)
    if name in ("byte", "any byte"):
        return Counts((1,) * BYTES)
    return Counts((1,) * (SHORT if name in SMALL_NUMBERS else SYMBOLS))


def put_number(out: bytearray, number: int) -> None:
    """Appends a number as packed steps have them: seven bits a byte, lowest first; the eighth says that more follow."""
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)


def _length(count: int) -> int:
    if count > MAX_LIST:
        raise RecordError("a list is longer than lists are")
    return count


def _choices(guesses: tuple[int | None, int | None]) -> int:
    """Which of the two guesses there are, as two bits."""
    same, follows = guesses
    return (same is not None) | (follows is not None) << 1


def _doubtful(doubt: int) -> int:
    """The class, 0 to 3, of a drafter's doubt in thousandths: symbols are counted apart for each."""
    return (doubt >= 20) + (doubt >= 200) + (doubt >= 600)


def _sort(byte: int) -> int:
    """The class of a byte, 0 to 6, for example vowels or digits: what follows it is counted apart for each."""
    if byte in b"aeiou":
        return 1
    if byte == 32:
        return 2
    if 97 <= byte <= 122:
        return 3
    return 4 if 65 <= byte <= 90 else 5 if 48 <= byte <= 57 else 6 if byte else 0
