"""What the parts of a round cost on one machine, by rows and context length. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass

from .trees import ROWS

PAYS = 1.1
"""A tried draft must be able to yield this many times the tokens that the target writes alone in the same time."""
DEAR_PAUSE = 48
"""How many tokens the target writes before the first draft of an answer, where a single try can't pay and drafting has
lost in this session."""
HOPED, HOPED_RESTS = 1.2, 16.0
"""The yield that drafted rounds are taken to have before any was seen, as a multiple of the target's own; and how many
of its rounds this assumption counts for."""
YIELD_MEMORY = 0.99
"""The factor by which earlier drafted rounds fade at each new one."""


@dataclass(frozen=True, slots=True)
class RoundCosts:
    """Milliseconds of the parts of a round on one machine, at one context length."""

    draft: float
    """A drafting pass, with the ingestion of what was accepted before it, and without the ``step`` of each token."""
    verify: tuple[float, ...]
    """Entry r - 1: the target's pass over r rows, the anchor and r - 1 drafted tokens. Entry 0 is also the pass of a
    round without a draft, and the time of its own pass where it has one."""
    ingest: float = 0.0
    """What a round without a draft takes beyond its pass, on average: the drafter takes in sixteen tokens at once."""
    lookup: float = 0.0
    """Looking drafts up, with the drafter's taking in of what was accepted before."""
    step: float = 0.0
    """What each drafted token takes; 0 where a block takes as long whatever is drafted, as on a GPU."""
    one_by_one: bool = False
    """Whether ``step`` is a pass of the drafter for each token, and not a row of one pass."""

    @property
    def plain(self) -> float:
        """Milliseconds of a round without a drafter: one pass of the target over one row."""
        return self.verify[0]

    @property
    def rest(self) -> float:
        """A round without a draft whose tokens the drafter takes in, so that it can draft the next one: pass and
        ``ingest``."""
        return self.verify[0] + self.ingest

    def round(self, num_verified: int, num_drafted: int | None = None) -> float:
        """A round that drafts ``num_drafted`` tokens and then verifies ``num_verified`` of them; by default all are
        drafted to be verified."""
        drafted = num_verified if num_drafted is None else num_drafted
        return self.draft + self.step * drafted + self.verify[num_verified]

    def tried(self, least: int) -> int:
        """How many drafted tokens to verify, at the least, to see whether drafting pays: the fewest, from ``least``
        on, with which a round that keeps all of them would pay; ``least`` where no number would, as on a CPU that
        drafts as slowly as it decodes."""
        numbers = range(least, min(ROWS, len(self.verify)))
        return next((count for count in numbers if (count + 1) * self.rest >= PAYS * self.round(count)), least)


@dataclass(slots=True)
class Yield:
    """What drafted rounds have yielded in all answers of the session; old ones fade."""

    tokens: float = HOPED * HOPED_RESTS
    rests: float = HOPED_RESTS
    """How many rounds without a draft, each a token, the same time would have held."""

    def observe(self, tokens: int, rests: float) -> None:
        """Counts a drafted round of ``tokens`` that took the time of ``rests`` rounds without a draft."""
        self.tokens = YIELD_MEMORY * self.tokens + tokens
        self.rests = YIELD_MEMORY * self.rests + rests

    @property
    def loses(self) -> bool:
        """Whether drafted rounds yielded less than the target alone would have."""
        return self.tokens < self.rests


@dataclass(frozen=True, slots=True)
class CostTable:
    """Costs timed at a few context lengths, ascending; between two of them they are interpolated linearly."""

    contexts: tuple[int, ...]
    costs: tuple[RoundCosts, ...]

    def at(self, context: int) -> RoundCosts:
        """The costs at a context length; beyond the table, those of its end."""
        for low, high in zip(range(len(self.contexts)), range(1, len(self.contexts)), strict=False):
            start, end = self.contexts[low], self.contexts[high]
            if start <= context < end:
                return _between(self.costs[low], self.costs[high], (context - start) / (end - start))
        return self.costs[0 if context < self.contexts[0] else -1]


def _between(low: RoundCosts, high: RoundCosts, share: float) -> RoundCosts:
    def mix(a: float, b: float) -> float:
        return a + share * (b - a)

    verify = tuple(map(mix, low.verify, high.verify))
    lookup, step = mix(low.lookup, high.lookup), mix(low.step, high.step)
    return RoundCosts(mix(low.draft, high.draft), verify, mix(low.ingest, high.ingest), lookup, step, low.one_by_one)
