"""How many drafted tokens to verify this round, by the drafter's confidence and by what passes cost on this machine.

On a mixture of experts every verified token brings experts that no other row chose, so a pass over 16 rows costs
several passes over one. The whole block is drafted either way (DFlash drafts it in one pass); the policy decides how
long a prefix the target looks at. No choice changes the text: the target samples every position itself.

A policy is pure: it sees confidences, the context's length and costs, never a tensor or a clock. Standard library
only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import mul
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class RoundCosts:
    """Milliseconds of the parts of a round on one machine, at one context length."""

    draft: float
    """A drafting pass, with the ingestion of what was accepted before it."""
    verify: tuple[float, ...]
    """Entry r - 1: the target's pass over r rows, the anchor and r - 1 drafted tokens."""

    @property
    def plain(self) -> float:
        """A round without a draft: one token for one pass."""
        return self.verify[0]

    def round(self, num_verified: int) -> float:
        """A round that drafts and then verifies so many drafted tokens."""
        return self.draft + self.verify[num_verified]


@dataclass(frozen=True, slots=True)
class CostTable:
    """Costs timed at a few context lengths, ascending; between two of them they grow evenly."""

    contexts: tuple[int, ...]
    costs: tuple[RoundCosts, ...]

    def at(self, context: int) -> RoundCosts:
        """Costs at a context length; beyond the table, those of its end."""
        for low, high in zip(range(len(self.contexts)), range(1, len(self.contexts)), strict=False):
            start, end = self.contexts[low], self.contexts[high]
            if start <= context < end:
                return _between(self.costs[low], self.costs[high], (context - start) / (end - start))
        return self.costs[0 if context < self.contexts[0] else -1]


def _between(low: RoundCosts, high: RoundCosts, share: float) -> RoundCosts:
    def mix(a: float, b: float) -> float:
        return a + share * (b - a)

    return RoundCosts(mix(low.draft, high.draft), tuple(map(mix, low.verify, high.verify)))


class Choice(NamedTuple):
    """How many drafted tokens to verify, and what decided it."""

    num_verified: int
    chance: float = 1.0
    """How likely the first draft left out was to be kept; the last one, when none was left out."""
    cost_ms: float = 0.0
    """What verifying that draft adds to the pass."""
    price: float = 0.0
    """Tokens that a millisecond is worth: what decoding yields on this text."""


class Policy(Protocol):
    """Chooses every round. ``observe`` must be told of every round, also of those without a draft."""

    def begin(self) -> None:
        """A new answer: what was learned of the drafter stays, what was found out about the text before it goes."""

    def wants_draft(self, context: int) -> bool:
        """Whether to draft in the coming round, or to let the target write one token alone."""

    def choose(self, confidences: Sequence[float], context: int) -> Choice:
        """How much of a draft to verify, given what the drafter gave each of its tokens, of which there is one."""

    def observe(self, confidences: Sequence[float], num_verified: int, num_accepted: int, context: int) -> None:
        """What came of a round: no confidences when nothing was drafted."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always the same width: ``block_size`` counts the anchor, so 16 verifies 15 drafted tokens."""

    block_size: int

    def begin(self) -> None:
        pass

    def wants_draft(self, context: int) -> bool:
        return self.block_size > 1

    def choose(self, confidences: Sequence[float], context: int) -> Choice:
        return Choice(min(self.block_size - 1, len(confidences)))

    def observe(self, confidences: Sequence[float], num_verified: int, num_accepted: int, context: int) -> None:
        pass


NUM_BINS = 10
PRIOR_WEIGHT = 4.0
"""How many observations the drafter's own word is worth against what was seen."""
MEMORY = 0.98
"""Weight that a bin's past keeps at each new observation in it: about the last fifty count."""


class Calibration:
    """What the drafter's confidence is worth, learned from what was accepted.

    Drafters are sure of themselves to a different degree on different texts. Each of ten bins of confidence counts
    how often a draft in it was accepted, given that the drafts before it were; with nothing seen yet, the confidence
    itself is the estimate.
    """

    def __init__(self) -> None:
        self.accepted = [0.0] * NUM_BINS
        """Per bin, over the drafts that were reached, old ones fading: how many were accepted."""
        self.confidence = [0.0] * NUM_BINS
        """And what their confidences add up to."""

    def chance(self, confidence: float) -> float:
        """How likely a draft of this confidence is to be accepted once it is reached, in [0, 1]."""
        index = bin_of(confidence)
        # The bin says how far its drafts were off, on average; within the bin the confidence still ranks them.
        expected = self.confidence[index] + PRIOR_WEIGHT * confidence
        found = self.accepted[index] + PRIOR_WEIGHT * confidence
        return min(confidence * found / expected, 1.0) if expected > 0 else confidence

    def observe(self, confidence: float, accepted: bool) -> None:
        index = bin_of(confidence)
        self.accepted[index] = MEMORY * self.accepted[index] + accepted
        self.confidence[index] = MEMORY * self.confidence[index] + confidence


def bin_of(confidence: float) -> int:
    """Bins are even in confidence: [0, 0.1), [0.1, 0.2), … [0.9, 1]."""
    return min(int(confidence * NUM_BINS), NUM_BINS - 1)


RATE_MEMORY = 0.9
"""Weight that the past keeps in the yield of drafted rounds, per round: about the last ten count."""
TRUST_ROUNDS, TRUST = 8, 1.3
"""An answer begins as if so many drafted rounds had yielded so many times what plain decoding yields, so that one bad
draft does not end drafting."""
FIRST_PAUSE, LONGEST_PAUSE = 4, 32
"""Tokens that the target writes alone before drafting is tried again; doubled each time it does not pay."""
COMEBACK_ROUNDS, COMEBACK = 3, 1.5
"""A try that pays counts as so many rounds; as much as it yielded, up to so many times the plain yield."""


@dataclass(slots=True)
class Auto:
    """The width with the best expected yield, plain decoding included.

    A millisecond has a price: the tokens that decoding yields in it on this text, which is at least what plain
    decoding yields. A drafted token is verified when its chance to be kept is worth more than the milliseconds that
    it adds. (Maximising the tokens per millisecond of each round by itself would verify too much of a bad draft: the
    milliseconds that it costs would yield more in the rounds behind it.)

    When even the best widths lose against plain decoding, the target writes alone for a while.
    """

    table: CostTable
    calibration: Calibration = field(default_factory=Calibration)
    _tokens: float = 0.0
    """Of recent drafted rounds, old ones fading; and the milliseconds they cost."""
    _milliseconds: float = 0.0
    _pause: int = 0
    """Plain rounds left before the next try."""
    _next_pause: int = FIRST_PAUSE
    _resting: bool = False
    """Drafting lost lately: the next draft is a try."""

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self._pause, self._next_pause, self._resting = 0, FIRST_PAUSE, False
        self._trust(TRUST_ROUNDS, self.table.costs[0].round(1), TRUST)

    def _trust(self, rounds: int, round_ms: float, times_plain: float) -> None:
        self._milliseconds = rounds * round_ms
        self._tokens = times_plain * self._milliseconds / self.table.costs[0].plain

    def price(self, context: int) -> float:
        """Tokens that a millisecond is worth at this context length."""
        return max(1 / self.table.at(context).plain, self._tokens / self._milliseconds)

    def wants_draft(self, context: int) -> bool:
        return self._pause == 0

    def choose(self, confidences: Sequence[float], context: int) -> Choice:
        costs, price = self.table.at(context), self.price(context)
        chances = tuple(accumulate(map(self.calibration.chance, confidences), mul))
        tokens = accumulate(chances, initial=1.0)
        worth = [expected - price * cost for expected, cost in zip(tokens, costs.verify, strict=False)]
        width = max(range(len(worth)), key=worth.__getitem__)
        edge = min(width, len(chances) - 1)
        return Choice(width, chances[edge], costs.verify[edge + 1] - costs.verify[edge], price)

    def observe(self, confidences: Sequence[float], num_verified: int, num_accepted: int, context: int) -> None:
        if not confidences:
            self._pause = max(self._pause - 1, 0)
            return
        # Half what came of the round and half what was to be expected of it, which scatters less.
        expected = sum(accumulate(map(self.calibration.chance, confidences[:num_verified]), mul), start=1.0)
        for index in range(min(num_accepted + 1, num_verified)):
            self.calibration.observe(confidences[index], index < num_accepted)
        costs = self.table.at(context)
        self._weigh((num_accepted + 1 + expected) / 2, costs.round(num_verified), costs.plain)

    def _weigh(self, tokens: float, round_ms: float, plain_ms: float) -> None:
        """Keep drafting, or rest: by what drafted rounds yielded lately."""
        times_plain = tokens * plain_ms / round_ms
        if self._resting and times_plain >= 1:
            # What went before the rest says little about the text behind it.
            self._trust(COMEBACK_ROUNDS, round_ms, min(times_plain, COMEBACK))
        else:
            self._tokens = RATE_MEMORY * self._tokens + tokens
            self._milliseconds = RATE_MEMORY * self._milliseconds + round_ms
        self._resting = self._tokens * plain_ms < self._milliseconds
        if self._resting:
            self._pause = self._next_pause
            self._next_pause = min(2 * self._next_pause, LONGEST_PAUSE)
        else:
            self._next_pause = FIRST_PAUSE
