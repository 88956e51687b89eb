"""The steps of a turn, kept packed: some 60 bytes each instead of several thousand, and any step's numbers at once."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator

from engine.events import Step

from .statistics import MAX_DRAFT, AcceptanceStatistics, is_corrected, num_verified
from .traces.packing import SECOND, Packer, Piece, Place, Unpacker, microseconds

CHECKPOINT = 32
"""Steps between two places where decoding can begin."""
NOT_SPECULATIVE, CORRECTED = 255, 64


class StepHistory:
    """Append-only. Indexing gives back steps equal to those appended (see :mod:`.traces.packing`).

    The arrays have one entry per step, times in microseconds. ``..._sum`` counts everything up to and with that step,
    so that a difference of two entries is the sum of any stretch.
    """

    def __init__(self) -> None:
        self.time = array("q")
        """At the end of the round, since the turn started."""
        self.accepted, self.verified, self.emitted = array("q"), array("q"), array("q")
        """Tokens per step: accepted drafts, drafts that the target verified, emitted."""
        self.draft_us, self.verify_us, self.total_us = array("q"), array("q"), array("q")
        self.accepted_sum, self.verified_sum, self.emitted_sum = array("q"), array("q"), array("q")
        self.draft_us_sum, self.verify_us_sum, self.total_us_sum = array("q"), array("q"), array("q")
        self.context_length = array("q")
        self._sums = (
            (self.accepted, self.accepted_sum),
            (self.verified, self.verified_sum),
            (self.emitted, self.emitted_sum),
            (self.draft_us, self.draft_us_sum),
            (self.verify_us, self.verify_us_sum),
            (self.total_us, self.total_us_sum),
        )
        self._outcomes = bytearray()
        """Accepted drafts, plus ``CORRECTED`` where the target then disagreed; or ``NOT_SPECULATIVE``."""
        self._frames = bytearray()
        self._ends = array("q")
        self._pieces: list[Piece] = []
        self._packer = Packer(self._pieces)
        self._places: list[Place] = []
        """The packer's state before every ``CHECKPOINT``-th step."""

    def append(self, step: Step) -> None:
        if len(self) % CHECKPOINT == 0:
            self._places.append(self._packer.place.copy())
        self._frames += self._packer.pack(step)
        self._ends.append(len(self._frames))
        self._count(step)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, index: int) -> Step:
        """Raises ``IndexError`` outside the history; negative indices count from the end."""
        return next(self.steps(range(len(self))[index]))

    def __iter__(self) -> Iterator[Step]:
        return self.steps()

    def steps(self, start: int = 0) -> Iterator[Step]:
        """The steps from ``start`` on, those that are appended meanwhile included."""
        if start >= len(self):
            return
        unpacker = Unpacker(self._pieces)
        unpacker.place = self._places[start // CHECKPOINT].copy()
        index = start - start % CHECKPOINT
        while index < len(self):
            step = unpacker.unpack(self._frame(index))
            if index >= start:
                yield step
            index += 1

    @property
    def num_tokens(self) -> int:
        return self.emitted_sum[-1] if self.emitted_sum else 0

    def tokens_before(self, index: int) -> int:
        """How many tokens the steps before step ``index`` emitted; ``index`` may be the length."""
        return self.emitted_sum[index - 1] if index > 0 else 0

    def step_of_token(self, token: int) -> int:
        """The step that emitted token number ``token``, counted from 0. Raises ``IndexError`` when none did."""
        if not 0 <= token < self.num_tokens:
            raise IndexError(f"no token {token} in {self.num_tokens}")
        return bisect_right(self.emitted_sum, token)

    def step_at(self, seconds: float) -> int:
        """How many steps had ended so many seconds after the turn started."""
        return bisect_right(self.time, microseconds(seconds))

    def acceptance(self, index: int) -> AcceptanceStatistics:
        """The acceptance statistics after step ``index``."""
        index = range(len(self))[index]
        seen = Counter(self._outcomes[: index + 1])
        corrected = tuple(seen[CORRECTED + count] for count in range(MAX_DRAFT + 1))
        histogram = tuple(seen[count] + corrected[count] for count in range(MAX_DRAFT + 1))
        return AcceptanceStatistics(self.verified_sum[index], histogram, corrected)

    def rejections(self, start: int = 0) -> Iterator[int]:
        """Steps from ``start`` on whose draft was corrected."""
        return (index for index in range(start, len(self)) if self.was_corrected(index))

    def was_corrected(self, index: int) -> bool:
        """The target disagreed with a draft of step ``index``."""
        return CORRECTED <= self._outcomes[index] < NOT_SPECULATIVE

    def rate(self, index: int, window: float = 1.0) -> float:
        """Tokens per second over the ``window`` seconds before the end of step ``index``. The clock starts with the
        first step, whose rate is 0."""
        index = range(len(self))[index]
        now = self.time[index]
        start = max(now - microseconds(window), self.time[0])
        before = max(bisect_right(self.time, start, hi=index + 1) - 1, 0)
        tokens = self.emitted_sum[index] - self.emitted_sum[before]
        return tokens * SECOND / (now - start) if now > start else 0.0

    def _frame(self, index: int) -> bytes:
        return bytes(self._frames[self._ends[index - 1] if index else 0 : self._ends[index]])

    def _count(self, step: Step) -> None:
        verified = num_verified(step)
        accepted = min(step.num_accepted, verified)
        self.time.append(microseconds(step.time))
        self.context_length.append(step.context_length)
        milliseconds = (step.draft_ms, step.verify_ms, step.total_ms)
        values = (accepted, verified, len(step.emitted), *(microseconds(value / 1000) for value in milliseconds))
        for (column, total), value in zip(self._sums, values, strict=True):
            column.append(value)
            total.append(value + (total[-1] if total else 0))
        self._outcomes.append(accepted + CORRECTED * is_corrected(step) if verified else NOT_SPECULATIVE)
