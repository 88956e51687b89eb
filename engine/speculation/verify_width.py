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
    """Entry r - 1: the target's pass over r rows, the anchor and r - 1 drafted tokens. The first is also that of a
    round without a draft; where such a round has a pass of its own, it is that one's."""
    ingest: float = 0.0
    """What a round without a draft takes beyond its pass, on average: the drafter is told of sixteen tokens at once."""

    @property
    def plain(self) -> float:
        """A round without a drafter: one token for one pass."""
        return self.verify[0]

    @property
    def rest(self) -> float:
        """A round without a draft, that leaves the drafter fit to draft the next one."""
        return self.verify[0] + self.ingest

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

    verify = tuple(map(mix, low.verify, high.verify))
    return RoundCosts(mix(low.draft, high.draft), verify, mix(low.ingest, high.ingest))


class Choice(NamedTuple):
    """How many drafted tokens to verify, and what decided it."""

    num_verified: int
    chance: float = 1.0
    """How likely the first draft left out was to be kept; the last one, when none was left out; 0 without a draft."""
    cost_ms: float = 0.0
    """What verifying that draft adds to the pass; without a draft, what one would add to the round."""
    price: float = 0.0
    """Tokens that a millisecond is worth: what decoding yields on this text."""


class Policy(Protocol):
    """Chooses every round. ``observe`` must be told of every round, also of those without a draft."""

    @property
    def feeds_drafter(self) -> bool:
        """Whether the drafter is told of rounds without a draft, so that it can draft again."""

    def begin(self) -> None:
        """A new answer: what was learned of the drafter stays, what was found out about the text before it goes."""

    def wants_draft(self, context: int) -> bool:
        """Whether to draft in the coming round, or to let the target write one token alone.

        Asked once before every round; the round before may not have been observed yet.
        """

    def pause(self, context: int) -> Choice | None:
        """Why there is no draft in a round that was to have none: what one would add. None where nobody decides."""

    def choose(self, confidences: Sequence[float], context: int) -> Choice:
        """How much of a draft to verify, given what the drafter gave each of its tokens, of which there is one."""

    def observe(self, confidences: Sequence[float], num_verified: int, num_accepted: int, context: int) -> None:
        """What came of a round: no confidences when nothing was drafted."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always the same width: ``block_size`` counts the anchor, so 16 verifies 15 drafted tokens."""

    block_size: int

    @property
    def feeds_drafter(self) -> bool:
        return self.block_size > 1

    def begin(self) -> None:
        pass

    def wants_draft(self, context: int) -> bool:
        return self.block_size > 1

    def pause(self, context: int) -> Choice | None:
        return None

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

    def copy(self) -> Calibration:
        other = Calibration()
        other.accepted, other.confidence = list(self.accepted), list(self.confidence)
        return other

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
SURPRISE, LEAST_ODDS = 0.01, 0.2
"""Drafts that fall at their first token round after round, at odds of less than this: the text has changed. (Where a
lost draft costs little, the odds must be less.) No single one counts for less than the second, however sure the drafter
was."""
TRY = 1
"""Drafted tokens that a try verifies: enough to see whether drafting may pay again."""
FIRST_PAUSE, LONGEST_PAUSE = 4, 64
"""Tokens that the target writes alone before drafting is tried again; doubled each time it does not pay."""
TRIES_SHARE = 0.015
"""Of a rest goes into tries, once its pauses are as long as they get: where a try costs little, they are short."""
COMEBACK_ROUNDS, COMEBACK = 3, 1.5
"""A try that pays counts as so many rounds; as much as it yielded, up to so many times the plain yield."""


@dataclass(slots=True)
class Auto:
    """The width with the best expected yield, plain decoding included.

    A millisecond has a price: the tokens that decoding yields in it on this text, which is at least what plain
    decoding yields. A drafted token is verified when its chance to be kept is worth more than the milliseconds that
    it adds. (Maximising the tokens per millisecond of each round by itself would verify too much of a bad draft: the
    milliseconds that it costs would yield more in the rounds behind it.)

    When even the best widths lose against plain decoding, the target writes alone for a while; then one draft is a
    try.
    """

    table: CostTable
    calibration: Calibration = field(default_factory=Calibration)
    _tokens: float = 0.0
    """Of recent drafted rounds, old ones fading; and the milliseconds they cost."""
    _milliseconds: float = 0.0
    _resting: bool = False
    """Drafting lost lately: the next draft is a try."""
    _trying: bool = False
    """That draft is on its way."""
    _pause: int = 0
    """Plain rounds left before the next try."""
    _next_pause: int = FIRST_PAUSE
    _odds: float = 1.0
    """How likely it was that all drafts fall which fell lately."""
    _before: Calibration = field(default_factory=Calibration)
    """What was known of the drafter before they did."""

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self._resting = self._trying = False
        self._pause, self._next_pause, self._odds = 0, FIRST_PAUSE, 1.0
        costs = self.table.costs[0]
        self._trust(TRUST_ROUNDS, TRUST, costs.round(1), costs.rest)

    def _trust(self, rounds: int, times_rest: float, round_ms: float, rest_ms: float) -> None:
        self._milliseconds = rounds * round_ms
        self._tokens = times_rest * self._milliseconds / rest_ms

    @property
    def feeds_drafter(self) -> bool:
        return True

    @property
    def trying(self) -> bool:
        """Whether the draft just wanted is a try, which verifies ``TRY`` tokens whatever their chances."""
        return self._trying

    def price(self, context: int) -> float:
        """Tokens that a millisecond is worth at this context length."""
        return max(1 / self.table.at(context).rest, self._tokens / self._milliseconds)

    def wants_draft(self, context: int) -> bool:
        if self._pause or self._trying:
            return False
        self._trying = self._resting
        return True

    def pause(self, context: int) -> Choice | None:
        costs = self.table.at(context)
        return Choice(0, 0.0, max(costs.round(TRY) - costs.rest, 0.0), self.price(context))

    def choose(self, confidences: Sequence[float], context: int) -> Choice:
        costs, price = self.table.at(context), self.price(context)
        chances = tuple(accumulate(map(self.calibration.chance, confidences), mul))
        tokens = accumulate(chances, initial=1.0)
        worth = [expected - price * cost for expected, cost in zip(tokens, costs.verify, strict=False)]
        width = TRY if self._trying else max(range(len(worth)), key=worth.__getitem__)
        edge = min(width, len(chances) - 1)
        return Choice(width, chances[edge], costs.verify[edge + 1] - costs.verify[edge], price)

    def observe(self, confidences: Sequence[float], num_verified: int, num_accepted: int, context: int) -> None:
        if not confidences:
            self._pause = max(self._pause - 1, 0)
            return
        costs = self.table.at(context)
        round_ms = costs.round(num_verified)
        if self._trying:
            self._judge(num_accepted + 1, costs)
            return
        # Half what came of the round and half what was to be expected of it, which scatters less.
        expected = sum(accumulate(map(self.calibration.chance, confidences[:num_verified]), mul), start=1.0)
        changed = num_verified > 0 and self._has_changed(confidences[0], num_accepted, round_ms / costs.rest - 1)
        for index in range(min(num_accepted + 1, num_verified)):
            self.calibration.observe(confidences[index], index < num_accepted)
        self._book((num_accepted + 1 + expected) / 2, round_ms, changed, costs)

    def _book(self, tokens: float, round_ms: float, changed: bool, costs: RoundCosts) -> None:
        """Enters what a drafted round yielded, and whether the text is another: drafting goes on, or rests."""
        if self._resting:
            return  # it was on its way when the rest began
        self._tokens = RATE_MEMORY * self._tokens + tokens
        self._milliseconds = RATE_MEMORY * self._milliseconds + round_ms
        if changed:
            # The drafter is what it was; only this text is not for it.
            self.calibration = self._before
        if changed or self._tokens * costs.rest < self._milliseconds:
            self._rest(costs)
        else:
            self._next_pause = max(self._next_pause // 2, FIRST_PAUSE)

    def _has_changed(self, confidence: float, num_accepted: int, loss: float) -> bool:
        """Whether too many drafts in a row have fallen at their first token for the text to be what it was.

        ``loss``: what such a round loses, in rounds without a draft.
        """
        if num_accepted:
            self._odds = 1.0
            return False
        if self._odds == 1.0:
            self._before = self.calibration.copy()
        self._odds *= max(1 - self.calibration.chance(confidence), LEAST_ODDS)
        return self._odds < SURPRISE * loss

    def _judge(self, tokens: int, costs: RoundCosts) -> None:
        """Go on drafting after a try that paid, rest again after another. What went before says little about it."""
        self._trying = False
        round_ms = costs.round(TRY)
        times_rest = tokens * costs.rest / round_ms
        if times_rest < 1:
            self._rest(costs)
            return
        self._resting = False
        self._trust(COMEBACK_ROUNDS, min(times_rest, COMEBACK), round_ms, costs.rest)

    def _rest(self, costs: RoundCosts) -> None:
        self._resting, self._odds = True, 1.0
        self._tokens, self._milliseconds = 1.0, costs.rest
        longest = min(round((costs.round(TRY) / costs.rest - 1) / TRIES_SHARE), LONGEST_PAUSE)
        self._pause = min(self._next_pause, max(longest, FIRST_PAUSE))
        self._next_pause = 2 * self._pause
