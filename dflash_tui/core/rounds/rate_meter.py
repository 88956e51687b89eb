"""How fast a turn's tokens came, at any of its rounds."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate, islice

from engine.rounds.numbers import SECOND
from engine.rounds.store import RoundStore

from ..figures.series import Series
from ..figures.statistics import Rate


class RateMeter:
    """Tokens per second on the engine's clock (now, mean, peak, history), counted after the first round, which is the
    prefill's token."""

    WINDOW = 1.0
    """Seconds that *now* looks back."""
    SAMPLE = SECOND // 10
    """Microseconds between two entries of the history."""

    def __init__(self, rounds: RoundStore) -> None:
        """``rounds`` is the history of one turn. Call :meth:`follow` when it has grown."""
        self._rounds = rounds
        self._clock = array("q")
        """Per round, the latest time so far: in a damaged trace a round may end before the one before it."""
        self._samples = Series()
        """The rate every ``SAMPLE``, from the first token on."""
        self._taken, self._peaks = array("I"), array("d")
        """Per sample, the round at whose end it was taken, and the best full second so far."""
        self.follow()

    def follow(self) -> None:
        """Take the samples that are due. Looks closely at the rounds of these alone."""
        clock, new = self._clock, self._rounds.time[len(self._clock) :]
        clock.extend(islice(accumulate(new, max, initial=clock[-1] if clock else 0), 1, None))
        index = self._taken[-1] if self._taken else 0
        while clock and (index := bisect_left(clock, self._due, index)) < len(clock):
            self._take(index)

    @property
    def _due(self) -> int:
        """The time at which the next sample is due."""
        return self._clock[0] + (len(self._samples) + 1) * self.SAMPLE

    def _take(self, index: int) -> None:
        """Take the samples that are due at the end of round ``index``; a long round fills several, so that they are
        even in time."""
        now = self._rounds.rate(index, self.WINDOW)
        passed = self._clock[index] - self._clock[0]
        peak = self._peaks[-1] if self._peaks else 0.0
        if passed >= self.WINDOW * SECOND:  # a window that is not full yet over-reports a burst
            peak = max(peak, now)
        for _ in range(passed // self.SAMPLE - len(self._samples)):
            self._samples.append(now)
            self._taken.append(index)
            self._peaks.append(peak)

    def after(self, index: int) -> Rate:
        """The rate as it was after round ``index``, negative ones from the end. Raises ``IndexError`` for no such
        round."""
        rounds = self._rounds
        index = range(len(rounds))[index]
        seconds = (rounds.time[index] - rounds.time[0]) / SECOND
        tokens = rounds.emitted_sum[index] - rounds.emitted_sum[0]
        mean = tokens / seconds if seconds > 0 else 0.0
        samples = bisect_right(self._taken, index)
        now = rounds.rate(index, self.WINDOW)
        # Never less than the mean of an answer that was shorter than a window, or a second that ends between samples.
        peak = max(self._peaks[samples - 1] if samples else 0.0, mean, now)
        return Rate(now, mean, peak, self._samples.first(samples))
