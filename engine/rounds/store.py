"""The store of rounds: each is written into it once, and screens, figures, files and exports read it there."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from operator import attrgetter
from threading import Lock

from ..events import Event, TurnFinished, TurnStarted
from .blocks import ROUNDS, Block, decoded, encoded
from .figures import RoundFigures
from .growing_text import GrowingText
from .numbers import RecordError
from .rows import CHANNELS, Row, row_of
from .step import Step


class RoundStore(RoundFigures):
    """The rounds of one turn, or of a recording's turns one behind the other. Append-only; indexing gives steps equal
    to those appended. The newest stand as they came, the others in blocks, some 80 bytes each instead of several
    thousand; their numbers stand in columns (:class:`RoundFigures`). The length is that of what is counted.

    One thread may :meth:`put` rounds, as an engine's does, and another :meth:`count` and :meth:`seal` them, which makes
    blocks of the oldest; any may read."""

    def __init__(self, steps: Iterable[Step] = ()) -> None:
        super().__init__()
        self.blocks: list[bytes] = []
        """The finished blocks, in order. None of them ever changes."""
        self._ends: list[int] = []
        """How many rounds there are up to and with each block."""
        self._tail: list[_Waiting] = []
        """The rounds behind the last block."""
        self._texts = GrowingText(), GrowingText()
        """What the rounds add to the answer and to the thought."""
        self._newest: _Waiting
        self._lead = 0
        """Rounds of the first block that stand before the first one: parts of other stores may begin within a block."""
        self._lock, self._sealing = Lock(), Lock()
        """Locks around what takes no time, and around the making of blocks, for which nobody who appends has to
        wait."""
        self._read: tuple[int, Block] | None = None
        """The block that was read last, and its place: whoever reads a step reads its neighbours."""
        for step in steps:
            self.append(step)

    def append(self, step: Step) -> None:
        """Add a round and count it."""
        self.put(step)
        self.count()

    def put(self, step: Step) -> None:
        """Add a round, which another thread counts."""
        self._newest = _Waiting(step)
        with self._lock:
            self._tail.append(self._newest)
            for text, channel in zip(self._texts, CHANNELS, strict=False):
                text.append(step.text(channel))
        if len(self._tail) >= 4 * ROUNDS:  # nobody else does
            self.seal()

    def adopt(self, data: bytes, block: Block, steps: Sequence[Step] = ()) -> None:
        """Add a block of a file, as it stands there. ``steps``: its own, if somebody has read them; then they are
        counted, too. Raises :class:`RecordError` for a damaged block."""
        texts = block.texts()
        self.seal(rest=True)
        with self._lock:
            self.blocks.append(data)
            self._ends.append(self._sealed + len(block))
            for whole, text in zip(self._texts, texts, strict=True):
                whole.append(text)
        for step in steps:
            self._count(step)

    def count(self, stop: int | None = None) -> RoundStore:
        """Count all rounds, or those before number ``stop``; of a file's, up to the first that is damaged. Returns this
        store."""
        with self._sealing, suppress(RecordError):
            self._count_up(self.held if stop is None else stop)
        return self

    def _count_up(self, stop: int) -> None:
        for index in range(len(self), stop):
            self._count(self._step(index + self._lead))

    def seal(self, *, rest: bool = False) -> None:
        """Make blocks of the rounds that wait, as long as there are enough for two, or with ``rest`` of all of them:
        none but a turn's only one has fewer than ``ROUNDS``."""
        if len(self._tail) < (1 if rest else 2 * ROUNDS):
            return
        with self._sealing:
            while (waiting := len(self._tail)) >= (1 if rest else 2 * ROUNDS):
                some = self._tail[: ROUNDS if waiting >= 2 * ROUNDS else waiting]
                _, alike = next(groupby(some, attrgetter("step.turn")))
                rows = [each.row for each in alike]
                if len(self) + self._lead >= self._sealed:  # otherwise rounds of a file before them are not counted
                    self._count_up(self._sealed + len(rows) - self._lead)
                block = encoded(self._sealed, rows)
                with self._lock:
                    self.blocks.append(block)
                    self._ends.append(self._sealed + len(rows))
                    del self._tail[: len(rows)]

    def say(self, answer: str) -> None:
        """Take ``answer`` for what the rounds of a part say: it is cut without reading them."""
        self._texts[0].append(answer)

    @property
    def answer(self) -> str:
        """What the rounds say, those that are not counted included."""
        with self._lock:
            return str(self._texts[0])

    @property
    def thought(self) -> str:
        """What they say of the model's thinking."""
        with self._lock:
            return str(self._texts[1])

    @property
    def num_characters(self) -> int:
        """Characters of both."""
        return sum(map(len, self._texts))

    @property
    def newest(self) -> Row:
        """The row of the round that was put last. Raises ``AttributeError`` before the first."""
        return self._newest.row

    @property
    def held(self) -> int:
        """How many rounds there are, those that are not counted included."""
        with self._lock:
            return self._sealed + len(self._tail) - self._lead

    def blocks_from(self, index: int) -> list[bytes]:
        """The blocks that hold round number ``index`` and those behind it."""
        with self._lock:
            return self.blocks[bisect_right(self._ends, index) :]

    def __getitem__(self, index: int) -> Step:
        """The step at ``index``; negative ones count from the end. Raises ``IndexError`` outside."""
        index = range(len(self))[index]
        return self._step(index + self._lead)

    def __iter__(self) -> Iterator[Step]:
        return self.steps()

    def steps(self, start: int = 0) -> Iterator[Step]:
        """Yields the steps from ``start`` on, and those that are appended meanwhile."""
        index = start
        while index < len(self):
            yield self[index]
            index += 1

    def between(self, start: int, stop: int) -> RoundStore:
        """The rounds from ``start`` to before ``stop`` as a store of its own, which shares the blocks."""
        cut = RoundStore()
        if start >= stop:
            return cut
        cut._copy(self, start, stop)
        start, stop = start + self._lead, stop + self._lead
        with self._lock:
            ends, blocks = list(self._ends), list(self.blocks)
        first, last = bisect_right(ends, start), bisect_right(ends, stop)
        skipped = ends[first - 1] if first else 0
        cut._lead = start - skipped
        cut.blocks, cut._ends = blocks[first:last], [end - skipped for end in ends[first:last]]
        cut._tail = [_Waiting(self._step(index)) for index in range(ends[last - 1] if last > first else skipped, stop)]
        cut.latest = cut[-1]
        last_drafted = cut._drafted.rfind(1)
        cut.latest_drafted = cut[last_drafted] if last_drafted >= 0 else None
        return cut

    @property
    def _sealed(self) -> int:
        return self._ends[-1] if self._ends else 0

    def _step(self, index: int) -> Step:
        """The step at a place, the lead counted. Raises :class:`RecordError` where its block is damaged."""
        with self._lock:
            if index >= self._sealed:
                return self._tail[index - self._sealed].step
        number = bisect_right(self._ends, index)
        read = self._read
        if read is None or read[0] != number:
            self._read = read = (number, decoded(self.blocks[number]))
        return read[1].step(index - (self._ends[number - 1] if number else 0))


class _Waiting:
    """A round that no block holds yet, and its row once somebody has asked for that."""

    __slots__ = ("_row", "step")

    def __init__(self, step: Step) -> None:
        self.step = step
        self._row: Row | None = None

    @property
    def row(self) -> Row:
        if self._row is None:
            self._row = row_of(self.step)
        return self._row


class Recorder:
    """Follows a source's events and keeps the rounds of the turn at hand, for all who write them down or show them."""

    def __init__(self) -> None:
        self._rounds = RoundStore()
        self._turn: int | None = None

    def take(self, event: Event) -> RoundStore:
        """The rounds of the latest turn with what ``event`` adds to them. A turn begins by its event, or else by its
        first round; one that ends without either has none."""
        if isinstance(event, TurnStarted) or (isinstance(event, Step | TurnFinished) and event.turn != self._turn):
            self._turn, self._rounds = event.turn, RoundStore()
        if isinstance(event, Step):
            self._rounds.put(event)
        return self._rounds
