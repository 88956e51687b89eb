"""What speculation gave, counted round by round while a turn runs. Names follow vLLM and aiperf."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from engine.commands import MAX_BLOCK_SIZE
from engine.events import Step

MAX_DRAFT = MAX_BLOCK_SIZE - 1


@dataclass(frozen=True, slots=True)
class PositionRate:
    """How often the draft at one position was accepted, given that every draft before it was."""

    reached: int
    accepted: int

    @property
    def rate(self) -> float | None:
        """In [0, 1]; None before the position was ever reached."""
        return self.accepted / self.reached if self.reached else None


@dataclass(slots=True)
class AcceptanceStatistics:
    """Acceptance over the speculative rounds of a turn; rounds without a draft do not count."""

    num_spec_steps: int = 0
    num_draft_tokens: int = 0
    num_accepted_draft_tokens: int = 0
    histogram: list[int] = field(default_factory=lambda: [0] * (MAX_DRAFT + 1))
    """Entry k: rounds that accepted k drafted tokens."""
    _reached: list[int] = field(default_factory=lambda: [0] * MAX_DRAFT)
    _accepted: list[int] = field(default_factory=lambda: [0] * MAX_DRAFT)

    def add(self, step: Step) -> None:
        verified = min(len(step.draft), max(step.verify_width - 1, 0), MAX_DRAFT)
        if verified == 0:
            return
        accepted = min(step.num_accepted, verified)
        self.num_spec_steps += 1
        self.num_draft_tokens += verified
        self.num_accepted_draft_tokens += accepted
        self.histogram[accepted] += 1
        for position in range(accepted):
            self._reached[position] += 1
            self._accepted[position] += 1
        # Only a correction is evidence against the next draft. A round that ended because every draft was
        # accepted, or because a stop token came, says nothing about it: it is right-censored.
        if accepted < verified and step.emitted and step.emitted[-1].verdict == "corrected":
            self._reached[accepted] += 1

    @property
    def mean_acceptance_length(self) -> float:
        """(accepted + one) per speculative round; 0 without one."""
        return 1 + self.num_accepted_draft_tokens / self.num_spec_steps if self.num_spec_steps else 0.0

    @property
    def positions(self) -> tuple[PositionRate, ...]:
        """The conditional acceptance curve, one entry per draft position."""
        return tuple(PositionRate(r, a) for r, a in zip(self._reached, self._accepted, strict=True))


class RateMeter:
    """Tokens per second on the engine's clock: now, mean and peak, with a history for a sparkline.

    The clock starts with the first round (the prefill's token), so a rate counts the tokens after it.
    """

    WINDOW = 1.0
    """Seconds that *now* looks back."""
    SAMPLE = 0.1
    """Seconds between two entries of the history."""

    def __init__(self) -> None:
        self.history: list[float] = []
        """The rate every ``SAMPLE`` seconds, from the first token to now."""
        self._peak = 0.0
        self._start: float | None = None
        self._end = 0.0
        self._tokens = 0
        self._recent: deque[tuple[float, int]] = deque()
        self._recent_tokens = 0
        self._next_sample = 0.0

    def add(self, time: float, tokens: int) -> None:
        """``time``: seconds since the turn started, at the end of a round that emitted ``tokens``."""
        if self._start is None:
            self._start = self._end = time
            self._next_sample = time + self.SAMPLE
            return
        self._end = time
        self._tokens += tokens
        self._recent.append((time, tokens))
        self._recent_tokens += tokens
        while self._recent and self._recent[0][0] <= time - self.WINDOW:
            self._recent_tokens -= self._recent.popleft()[1]
        if time >= self._next_sample:
            self._take_sample(time)

    def _take_sample(self, time: float) -> None:
        # A round longer than a sample fills several, so that the history is even in time.
        while self._next_sample <= time:
            self.history.append(self.now)
            self._next_sample += self.SAMPLE
        # A window that is not full yet over-reports a burst.
        if self._start is not None and time - self._start >= self.WINDOW:
            self._peak = max(self._peak, self.now)

    @property
    def now(self) -> float:
        """Tokens per second over the last second."""
        span = min(self.WINDOW, self._end - (self._start or 0.0))
        return self._recent_tokens / span if span > 0 else 0.0

    @property
    def peak(self) -> float:
        """The best full second, and never less than the mean of an answer that was shorter."""
        return max(self._peak, self.mean)

    @property
    def mean(self) -> float:
        """Tokens per second since the first token."""
        span = self._end - (self._start or 0.0)
        return self._tokens / span if span > 0 else 0.0
