"""The steps of a turn: in blocks of a log, some 80 bytes each instead of several thousand, and any step's numbers at
once."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import get_args

from engine.events import MICROSECONDS, Source, Step, sources_in

from ..figures.speed_up import Decoded, Pair
from ..figures.statistics import MAX_DRAFT, AcceptanceStatistics, RoundCost
from ..lazy_sequence import LazySequence
from ..records.blocks import Block
from ..records.numbers import SECOND, microseconds
from ..records.round_log import RoundLog

NOT_SPECULATIVE, CORRECTED = 2**16 - 1, 2**14


class Differences(LazySequence[int]):
    """What each step added to a sum."""

    __slots__ = ("_sum",)

    def __init__(self, total: array[int]) -> None:
        """``total`` holds the sum after each step, and may grow."""
        self._sum = total

    def __len__(self) -> int:
        return len(self._sum)

    def item_at(self, index: int) -> int:
        return self._sum[index] - (self._sum[index - 1] if index else 0)


class StepHistory:
    """Append-only; indexing gives steps equal to those appended (:mod:`..records.rows`). Columns have an entry per
    step, times in microseconds; ``..._sum`` counts up to and with it, so a difference is the sum of a run of steps."""

    def __init__(self, log: RoundLog | None = None) -> None:
        """``log``: where the steps stand already, or will before they are appended here, because somebody records
        them; it may be ahead. Without one they are kept here alone."""
        self._log = RoundLog() if log is None else log
        self.time = array("q")
        """The time at the end of each round, since the turn started."""
        self.accepted_sum, self.verified_sum, self.emitted_sum = array("I"), array("I"), array("I")
        self.draft_us_sum, self.verify_us_sum, self.total_us_sum = array("q"), array("q"), array("q")
        columns = (
            self.accepted_sum, self.verified_sum, self.emitted_sum,
            self.draft_us_sum, self.verify_us_sum, self.total_us_sum,
        )  # fmt: skip
        self.accepted, self.verified, self.emitted, self.draft_us, self.verify_us, self.total_us = map(
            Differences, columns
        )
        self._by_source: dict[Source, array[int]] = {source: array("I") for source in get_args(Source)}
        """Accepted tokens that name who guessed them."""
        self._sums = (*columns, *self._by_source.values())
        """Tokens per step: accepted drafts, drafts that the target verified, emitted; and what its parts took."""
        self.context_length = array("q")
        self.latest: Step | None = None
        """The last step; None before the first."""
        self.latest_drafted: Step | None = None
        """The last step that had a draft; None when none had."""
        self._outcomes = array("H")
        """Accepted drafts, plus ``CORRECTED`` where the target then disagreed; or ``NOT_SPECULATIVE``."""
        self._tallies = _tally(self._outcomes)
        self._drafted = bytearray()
        """1 where there was a draft, verified or not."""
        self._timed = bytearray()
        """1 where it is known what draft and verify took; unknown times count as 0 in their columns."""
        self._beside_us = array("q")
        """Microseconds of passes of one row beside the rounds, up to and with each step."""
        self._paired, self._pairs = array("I"), list[Pair]()
        """Passes of one row that stand beside rounds with a draft, and with which step each pair was complete."""

    def append(self, step: Step) -> None:
        if len(self._log) == len(self):
            self._log.append(step)
        self._count(step)

    def adopt(self, data: bytes, block: Block, steps: Sequence[Step]) -> None:
        """Append the steps of a block of a file, which is kept as it is."""
        self._log.adopt(data, block)
        for step in steps:
            self._count(step)

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, index: int) -> Step:
        """The step at ``index``; negative ones count from the end. Raises ``IndexError`` outside the history."""
        return self._log[range(len(self))[index]]

    def __iter__(self) -> Iterator[Step]:
        return self.steps()

    def steps(self, start: int = 0) -> Iterator[Step]:
        """The steps from ``start`` on, those that are appended meanwhile included."""
        index = start
        while index < len(self):
            yield self._log[index]
            index += 1

    def between(self, start: int, stop: int) -> StepHistory:
        """The steps from ``start`` to before ``stop`` as a history of its own, which shares what holds them."""
        if start >= stop:
            return StepHistory()
        cut = StepHistory(self._log.between(start, stop))
        for own, copy in ((self.time, cut.time), (self.context_length, cut.context_length)):
            copy.extend(own[start:stop])
        for own_sum, copy_sum in zip(self._sums, cut._sums, strict=True):
            copy_sum.extend(_less(own_sum[start:stop], own_sum[start - 1] if start else 0))
        cut._outcomes, cut._drafted = self._outcomes[start:stop], self._drafted[start:stop]
        cut._timed = self._timed[start:stop]
        cut._beside_us.extend(_less(self._beside_us[start:stop], self._beside_us[start - 1] if start else 0))
        first, last = bisect_right(self._paired, start), bisect_left(self._paired, stop)
        cut._paired.extend(index - start for index in self._paired[first:last])
        cut._pairs.extend(self._pairs[first:last])
        cut._tallies = _tally(cut._outcomes)
        cut.latest = cut._log[stop - start - 1]
        last_drafted = cut._drafted.rfind(1)
        cut.latest_drafted = cut._log[last_drafted] if last_drafted >= 0 else None
        return cut

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

    def acceptance(self, index: int) -> AcceptanceStatistics:
        index = range(len(self))[index]
        tallies = self._tallies if index == len(self) - 1 else _tally(self._outcomes[: index + 1])
        histogram, corrected = map(tuple, tallies)
        named = ((source, column[index]) for source, column in sorted(self._by_source.items()) if column[index])
        return AcceptanceStatistics(self.verified_sum[index], histogram, corrected, tuple(named))

    def cost(self, index: int) -> RoundCost:
        """Where the milliseconds went up to and with step ``index``, without the first, the prefill's."""
        index = range(len(self))[index]
        columns = (self.draft_us_sum, self.verify_us_sum, self.total_us_sum)
        draft, verify, total = ((column[index] - column[0]) / MICROSECONDS for column in columns)
        known = self._timed.find(0, 1, index + 1) < 0
        return RoundCost(index, draft, verify, total) if known else RoundCost(index, None, None, total)

    def decoded(self, index: int) -> Decoded:
        """What a factor counts of the rounds up to and with step ``index``; ``pairs`` are what it counts them with."""
        index = range(len(self))[index]
        drafted = self._drafted.count(1, 1, index + 1)
        passed, measured_us = self.time[index] - self.time[0], self.total_us_sum[index] - self.total_us_sum[0]
        rest = max(passed - measured_us - self._beside_us[index] + self._beside_us[0], 0) / max(measured_us, 1)
        tokens = self.emitted_sum[index] - self.emitted_sum[0]
        rows = 1 + (self.verified_sum[index] - self.verified_sum[0]) / max(drafted, 1)
        return Decoded(tokens, drafted, index - drafted, rows, rest)

    def pairs(self, index: int) -> list[Pair]:
        """Passes of one row and rounds beside them, up to and with step ``index``."""
        return self._pairs[: bisect_right(self._paired, range(len(self))[index])]

    @property
    def beside_ms(self) -> float:
        """Milliseconds of the passes of one row that were taken beside rounds."""
        return self._beside_us[-1] / MICROSECONDS if self._beside_us else 0.0

    def pairs_with(self, one_row: float, index: int, most: int) -> list[Pair]:
        """Some rounds with a draft, evenly from all up to and with step ``index``, beside a pass over one row that took
        so many milliseconds elsewhere."""
        places = range(1, range(len(self))[index] + 1, max(len(self) // most, 1))
        drafted = (step for step in places if self._drafted[step])
        timed = ((self.total_us[step] / MICROSECONDS, self.verified[step]) for step in drafted)
        return [Pair(one_row, took, verified + 1) for took, verified in timed if took > 0]

    def pass_times(self, index: int) -> Iterator[tuple[int, int]]:
        """Rows and microseconds of each pass of the target up to and with step ``index``, those that were taken to
        compare included, and the prompt's left out."""
        for earlier in range(1, range(len(self))[index] + 1):
            if self._timed[earlier] and self.verify_us[earlier] > 0:
                yield self.verified[earlier] + 1, self.verify_us[earlier]
            if (beside_us := self._beside_us[earlier] - self._beside_us[earlier - 1]) > 0:
                yield 1, beside_us

    def is_timed(self, index: int) -> bool:
        """Whether it is known how long draft and verify of step ``index`` took."""
        return bool(self._timed[index])

    def was_corrected(self, index: int) -> bool:
        """Whether the target disagreed with a draft of step ``index``."""
        return CORRECTED <= self._outcomes[index] < NOT_SPECULATIVE

    def rate(self, index: int, window: float = 1.0) -> float:
        """Tokens per second over ``window`` seconds before the end of step ``index``; 0 at the first."""
        index = range(len(self))[index]
        now = self.time[index]
        start = max(now - microseconds(window), self.time[0])
        before = max(bisect_right(self.time, start, hi=index + 1) - 1, 0)
        tokens = self.emitted_sum[index] - self.emitted_sum[before]
        return tokens * SECOND / (now - start) if now > start else 0.0

    def _count(self, step: Step) -> None:
        self._pair(step)
        accepted, drafts, corrected = step.num_kept, step.num_drafted > 0, step.is_corrected
        self.time.append(microseconds(step.time))
        self.context_length.append(step.context_length)
        milliseconds = (step.draft_ms, step.verify_ms, step.total_ms)
        times = (microseconds((value or 0.0) / 1000) for value in milliseconds)
        sources = sources_in(step)
        values = (
            accepted, step.num_verified, step.num_emitted, *times,
            *(sources.count(source) for source in self._by_source),
        )  # fmt: skip
        for total, value in zip(self._sums, values, strict=True):
            total.append(value + (total[-1] if total else 0))
        self._drafted.append(drafts)
        self._timed.append(step.draft_ms is not None and step.verify_ms is not None)
        self._outcomes.append(accepted + CORRECTED * corrected if drafts else NOT_SPECULATIVE)
        for tally, more in zip(self._tallies, (drafts, corrected), strict=True):
            tally.extend([0] * (accepted + 1 - len(tally)))
            tally[accepted] += more
        self.latest, self.latest_drafted = step, step if drafts else self.latest_drafted

    def _pair(self, step: Step) -> None:
        """Looks for a pass of one row beside a round with a draft: taken for that, or itself a round."""
        beside_us = self._beside_us[-1] if self._beside_us else 0
        self._beside_us.append(beside_us + microseconds((step.alone_ms or 0.0) / 1000))
        before = self.latest
        if before is not None and (before.turn != step.turn or not before.index):
            before = None  # the first round of an answer is the prompt's
        drafted = [each for each in (before, step) if each is not None and each.num_drafted]
        one_row = 0.0
        if step.num_drafted and step.alone_ms:
            one_row = step.alone_ms
        elif before is not None and before.num_drafted and step.verify_width == 1:
            one_row, drafted = step.total_ms - (step.draft_ms or 0.0) * bool(step.num_drafted), [before]
        elif before is not None and step.num_drafted and not before.num_drafted:
            one_row = before.total_ms
        for each in drafted if one_row > 0 else ():
            if each.total_ms > 0:
                self._paired.append(len(self))
                self._pairs.append(Pair(one_row, each.total_ms, each.verify_width))


def history_of(steps: Iterable[Step]) -> StepHistory:
    history = StepHistory()
    for step in steps:
        history.append(step)
    return history


def _tally(outcomes: array[int]) -> tuple[list[int], list[int]]:
    """By accepted drafts, how many rounds had so many, and how many of these the target then corrected."""
    seen = Counter(outcomes)
    most = max((outcome % CORRECTED for outcome in seen if outcome != NOT_SPECULATIVE), default=0)
    corrected = [seen[CORRECTED + count] for count in range(max(most, MAX_DRAFT) + 1)]
    return [seen[count] + fell for count, fell in enumerate(corrected)], corrected


def _less(values: array[int], base: int) -> array[int]:
    return array(values.typecode, (value - base for value in values)) if base else values
