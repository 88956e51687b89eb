"""The rounds of a turn, written once: history, session and trace keep the same blocks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from threading import Lock

from engine.events import Event, Step, TurnStarted

from .blocks import ROUNDS, Block, decoded, encoded


class RoundLog:
    """Append-only. One thread appends; any thread may read and :meth:`seal`, which makes blocks of the newest steps."""

    def __init__(self, steps: Iterable[Step] = ()) -> None:
        self.blocks: list[bytes] = []
        """The finished blocks, in order. None of them ever changes."""
        self._ends: list[int] = []
        """How many steps there are up to and with each block."""
        self._tail: list[Step] = []
        """The steps behind the last block."""
        self._lead = 0
        """Steps of the first block that stand before the first one: parts of other logs may begin within a block."""
        self._lock, self._sealing = Lock(), Lock()
        """Locks around what takes no time, and around the making of blocks, for which nobody who appends has to
        wait."""
        self._read: tuple[int, Block] | None = None
        """The block that was read last, and its place: whoever reads a step reads its neighbours."""
        for step in steps:
            self.append(step)

    def append(self, step: Step) -> None:
        """Add a step. Makes a block once steps for two are waiting."""
        with self._lock:
            self._tail.append(step)
        self.seal()

    def adopt(self, data: bytes, block: Block) -> None:
        """Add a block of a file, as it stands there."""
        self.seal(rest=True)
        with self._lock:
            self.blocks.append(data)
            self._ends.append(self._sealed + len(block))

    def seal(self, *, rest: bool = False) -> None:
        """Make blocks of the steps that wait, as long as there are enough for two, or with ``rest`` of all of them:
        none but a turn's only one has fewer than ``ROUNDS``."""
        with self._sealing:
            while (waiting := len(self._tail)) >= (1 if rest else 2 * ROUNDS):
                count = ROUNDS if waiting >= 2 * ROUNDS else waiting
                _, first = next(groupby(self._tail[:count], attrgetter("turn")))
                steps = list(first)
                block = encoded(steps[0].turn, self._sealed, steps)
                with self._lock:
                    self.blocks.append(block)
                    self._ends.append(self._sealed + len(steps))
                    del self._tail[: len(steps)]

    @property
    def waiting(self) -> int:
        """Steps that no block holds yet."""
        return len(self._tail)

    def blocks_from(self, index: int) -> list[bytes]:
        """The blocks that hold step number ``index`` and those behind it."""
        with self._lock:
            return self.blocks[bisect_right(self._ends, index) :]

    def __len__(self) -> int:
        with self._lock:
            return self._sealed + len(self._tail) - self._lead

    def __getitem__(self, index: int) -> Step:
        """Step number ``index``, counted from 0. Raises ``IndexError`` behind the last."""
        return self._at(index + self._lead)

    def __iter__(self) -> Iterator[Step]:
        return self.steps()

    def steps(self, start: int = 0) -> Iterator[Step]:
        """Yields the steps from ``start`` on, and those that are appended meanwhile."""
        index = start
        while index < len(self):
            yield self[index]
            index += 1

    def between(self, start: int, stop: int) -> RoundLog:
        """The steps from ``start`` to before ``stop`` as a log of its own, which shares the blocks."""
        cut, start, stop = RoundLog(), start + self._lead, stop + self._lead
        with self._lock:
            ends, blocks = list(self._ends), list(self.blocks)
        first, last = bisect_right(ends, start), bisect_right(ends, stop)
        skipped = ends[first - 1] if first else 0
        cut._lead = start - skipped
        cut.blocks, cut._ends = blocks[first:last], [end - skipped for end in ends[first:last]]
        cut._tail = [self._at(index) for index in range(ends[last - 1] if last > first else skipped, stop)]
        return cut

    @property
    def _sealed(self) -> int:
        return self._ends[-1] if self._ends else 0

    def _at(self, index: int) -> Step:
        """The step at a place, the lead counted."""
        with self._lock:
            if index >= self._sealed:
                return self._tail[index - self._sealed]
        number = bisect_right(self._ends, index)
        read = self._read
        if read is None or read[0] != number:
            self._read = read = (number, decoded(self.blocks[number]))
        return read[1].step(index - (self._ends[number - 1] if number else 0))


class Recorder:
    """Follows a source's events and keeps the rounds of the turn at hand, for all who write them down or show them."""

    def __init__(self) -> None:
        self._rounds: RoundLog | None = None
        """The rounds of the latest turn; None before the first."""
        self._turn = 0

    def take(self, event: Event) -> RoundLog | None:
        """The rounds of the latest turn with what ``event`` adds to them; None before the first. A turn begins by its
        event, or else by its first round."""
        if isinstance(event, TurnStarted) or (isinstance(event, Step) and event.turn != self._turn):
            self._turn, self._rounds = event.turn, RoundLog()
        if isinstance(event, Step) and self._rounds is not None:
            self._rounds.append(event)
        return self._rounds
