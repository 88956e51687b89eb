"""The numbers of rounds in columns: any round's at once, and what they add up to up to each of them."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from ..events import TurnStatistics
from .lazy_sequence import LazySequence
from .numbers import SECOND, microseconds, whole
from .statistics import MAX_DRAFT, AcceptanceStatistics, Decoded, OneRowPair, RoundCost, TurnMeter
from .step import MICROSECONDS, DraftSource, Step, sources_in, verified_sources

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


class RoundFigures:
    """Append-only. Columns have an entry per round, times in microseconds; ``..._sum`` counts up to and with it, so a
    difference is the sum of a run of rounds. One thread counts; others may read meanwhile, up to the length."""

    def __init__(self) -> None:
        self.time = array("q")
        """The time at the end of each round, since the turn started."""
        self.accepted_sum, self.verified_sum, self.emitted_sum = array("I"), array("I"), array("I")
        self.draft_us_sum, self.verify_us_sum, self.total_us_sum = array("q"), array("q"), array("q")
        self._sums = (
            self.accepted_sum, self.verified_sum, self.emitted_sum,
            self.draft_us_sum, self.verify_us_sum, self.total_us_sum,
        )  # fmt: skip
        """Tokens per round: accepted drafts, drafts that the target verified, emitted; and what its parts took."""
        self.accepted, self.verified, self.emitted, self.draft_us, self.verify_us, self.total_us = map(
            Differences, self._sums
        )
        self._by_source: dict[DraftSource, tuple[array[int], array[int]]] = {}
        """Sums of the verified and of the accepted tokens that name who guessed them, for each source that was
        named."""
        self.context_length = array("q")
        self.latest: Step | None = None
        """The last step; None before the first."""
        self.latest_drafted: Step | None = None
        """The last step that had a draft; None when none had."""
        self._outcomes = array("H")
        """Accepted drafts, plus ``CORRECTED`` where the target then disagreed; or ``NOT_SPECULATIVE``."""
        self._tallies = _tally(self._outcomes)
        """Those of all rounds."""
        self._drafted = bytearray()
        """1 where there was a draft, verified or not."""
        self._timed = bytearray()
        """1 where it is known what draft and verify took; unknown times count as 0 in their columns."""
        self._beside_us = array("q")
        """Microseconds of passes of one row beside the rounds, up to and with each."""
        self._paired, self._pairs = array("I"), list[OneRowPair]()
        """Passes of one row that stand beside rounds with a draft, and with which round each pair was complete."""
        self._length = 0

    def __len__(self) -> int:
        """Rounds that are counted."""
        return self._length

    @property
    def num_tokens(self) -> int:
        return self.emitted_sum[-1] if self.emitted_sum else 0

    @property
    def seconds(self) -> float:
        """Seconds from the end of the first round to that of the last."""
        return self.time[-1] / SECOND - self.time[0] / SECOND if self.time else 0.0

    @property
    def num_passes(self) -> int:
        """Passes of the target: one for each round but the first, the prompt's."""
        return max(self._length - 1, 0)

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
        named = ((source, sums[1][index]) for source, sums in sorted(self._by_source.items()) if sums[1][index])
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

    def pairs(self, index: int) -> list[OneRowPair]:
        """Passes of one row and rounds beside them, up to and with step ``index``."""
        return self._pairs[: bisect_right(self._paired, range(len(self))[index])]

    @property
    def beside_ms(self) -> float:
        """Milliseconds of the passes of one row that were taken beside rounds."""
        return self._beside_us[-1] / MICROSECONDS if self._beside_us else 0.0

    def pairs_with(self, one_row: float, index: int, most: int) -> list[OneRowPair]:
        """Some rounds with a draft, evenly from all up to and with step ``index``, beside a pass over one row that took
        so many milliseconds elsewhere."""
        places = range(1, range(len(self))[index] + 1, max(len(self) // most, 1))
        drafted = (step for step in places if self._drafted[step])
        timed = ((self.total_us[step] / MICROSECONDS, self.verified[step]) for step in drafted)
        return [OneRowPair(one_row, took, verified + 1) for took, verified in timed if took > 0]

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

    def statistics(self, num_prompt_tokens: int = 0, num_reused_tokens: int = 0) -> TurnStatistics:
        """What all rounds add up to."""
        meter = TurnMeter()
        if self._length:
            last = self._length - 1
            first = min(bisect_right(self.emitted_sum, 0), last)
            meter.num_tokens, meter.num_steps = self.emitted_sum[last], self._length
            meter.num_spec_steps = self._drafted.count(1)
            meter.num_draft_tokens, meter.num_accepted = self.verified_sum[last], self.accepted_sum[last]
            meter.histogram = [*self._tallies[0]]
            while meter.histogram and not meter.histogram[-1]:
                meter.histogram.pop()
            meter.first_time, meter.last_time = self.time[first] / SECOND, self.time[last] / SECOND
            meter.tokens_after_first_step = meter.num_tokens - self.emitted_sum[first]
        for source, (verified, accepted) in self._by_source.items():
            meter.verified[source], meter.accepted[source] = verified[-1], accepted[-1]
        return meter.statistics(num_prompt_tokens, num_reused_tokens)

    def _count(self, step: Step) -> None:
        """Count one more round."""
        self._pair(step)
        accepted, verified, drafts = step.num_kept, step.num_verified, bool(step.draft_columns.ids)
        times = (whole(value or 0.0, MICROSECONDS) for value in (step.draft_ms, step.verify_ms, step.total_ms))
        numbers = (accepted, verified, len(step.emitted_columns.ids), *times)
        if self._length:
            for total, number in zip(self._sums, numbers, strict=True):
                total.append(number + total[-1])
        else:
            for total, number in zip(self._sums, numbers, strict=True):
                total.append(number)
        self.time.append(microseconds(step.time))
        self.context_length.append(step.context_length)
        self._drafted.append(drafts)
        self._timed.append(step.draft_ms is not None and step.verify_ms is not None)
        corrected = drafts and step.is_corrected
        self._outcomes.append(accepted + CORRECTED * corrected if drafts else NOT_SPECULATIVE)
        if drafts:
            self._count_sources(verified_sources(step), step)
            for tally, more in zip(self._tallies, (drafts, corrected), strict=True):
                if accepted >= len(tally):
                    tally.extend([0] * (accepted + 1 - len(tally)))
                tally[accepted] += more
            self.latest_drafted = step
        elif self._by_source:
            self._count_sources((), step)
        self.latest = step
        self._length += 1

    def _count_sources(self, verified: Sequence[DraftSource | None], step: Step) -> None:
        if any(verified):
            for source in {each for each in verified if each is not None} - self._by_source.keys():
                zeros = bytes(4 * self._length)
                self._by_source[source] = array("I", zeros), array("I", zeros)
        if self._by_source:
            accepted = sources_in(step) if verified else ()
            for source, sums in self._by_source.items():
                for total, named in zip(sums, (verified, accepted), strict=True):
                    total.append(named.count(source) + (total[-1] if total else 0))

    def _pair(self, step: Step) -> None:
        """Looks for a pass of one row beside a round with a draft: taken for that, or itself a round."""
        alone_ms = step.alone_ms or 0.0
        self._beside_us.append((self._beside_us[-1] if self._beside_us else 0) + microseconds(alone_ms / 1000))
        before, drafts = self.latest, bool(step.draft_columns.ids)
        if before is not None and (before.turn != step.turn or not before.index):
            before = None  # the first round of an answer is the prompt's
        before_drafts = before is not None and bool(before.draft_columns.ids)
        if drafts and alone_ms > 0:
            self._add_pairs(alone_ms, before if before_drafts else None, step)
        elif before_drafts and step.verify_width == 1:
            self._add_pairs(step.total_ms - (step.draft_ms or 0.0) * drafts, before)
        elif before is not None and drafts and not before_drafts:
            self._add_pairs(before.total_ms, step)

    def _add_pairs(self, one_row: float, *drafted: Step | None) -> None:
        for each in drafted:
            if each is not None and each.total_ms > 0 and one_row > 0:
                self._paired.append(self._length)
                self._pairs.append(OneRowPair(one_row, each.total_ms, each.verify_width))

    def _copy(self, other: RoundFigures, start: int, stop: int) -> None:
        """Count the rounds of ``other`` from ``start`` to before ``stop``, without looking at them."""
        for own, theirs in ((self.time, other.time), (self.context_length, other.context_length)):
            own.extend(theirs[start:stop])
        self._by_source = {source: (array("I"), array("I")) for source in other._by_source}
        sums = zip(self._every_sum, other._every_sum, strict=True)
        for own, theirs in sums:
            own.extend(_less(theirs[start:stop], theirs[start - 1] if start else 0))
        self._outcomes, self._drafted = other._outcomes[start:stop], other._drafted[start:stop]
        self._timed = other._timed[start:stop]
        first, last = bisect_right(other._paired, start), bisect_left(other._paired, stop)
        self._paired.extend(index - start for index in other._paired[first:last])
        self._pairs.extend(other._pairs[first:last])
        self._tallies = _tally(self._outcomes)
        self._length = stop - start

    @property
    def _every_sum(self) -> Iterator[array[int]]:
        return chain(self._sums, (self._beside_us,), *self._by_source.values())


def _tally(outcomes: array[int]) -> tuple[list[int], list[int]]:
    """By accepted drafts, how many rounds had so many, and how many of these the target then corrected."""
    seen = Counter(outcomes)
    most = max((outcome % CORRECTED for outcome in seen if outcome != NOT_SPECULATIVE), default=0)
    corrected = [seen[CORRECTED + count] for count in range(max(most, MAX_DRAFT) + 1)]
    return [seen[count] + fell for count, fell in enumerate(corrected)], corrected


def _less(values: array[int], base: int) -> array[int]:
    return array(values.typecode, (value - base for value in values)) if base else values
