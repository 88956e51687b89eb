"""How much of a draft to verify: the interface of every policy, and the policy of a fixed block size. A policy chooses
the tree to verify, and never the text. It is pure: it knows confidences, context length and costs, but no tensor and no
clock. Standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..events import WidthChoice
from .choice import UNWEIGHED, ChoiceNumbers, Chosen, LookupOutcome, RoundPlan
from .lookup import LookedUpChain
from .trees import ROWS, Chances, Node, chain


class Policy:
    """Decides before every round and ``observe``s it afterwards, also without a draft. This one always drafts and
    leaves the width open: on a device, the whole draft is verified."""

    __slots__ = ()

    def begin(self, drafts: bool = True) -> None:
        """Begins an answer: what was learned of the drafter stays, what was learned of the text before it goes.
        ``drafts``: whether a drafter takes part in it."""

    def wants_draft(self, context: int) -> bool:
        """Whether to draft in the coming round, or let the target write one token alone. Asked once for each round,
        perhaps before the last one was observed."""
        return True

    def depth(self, context: int, counts: Sequence[int]) -> int:
        """How many tokens to draft in the coming round, which has a draft: one of ``counts``, ascending."""
        return counts[-1]

    def plan(self, context: int, length: int) -> RoundPlan:
        """Whether to draft (``wants_draft``), and whether to look drafts up. ``length``: tokens of the newest known
        match, 0 without one."""
        return RoundPlan(self.wants_draft(context))

    def pause(self, context: int) -> WidthChoice | None:
        """Why there is no draft in a round that was to have none: what one would add. None where none ever comes."""
        return None

    def choose(self, chances: Chances, context: int, rows: int = ROWS, looked: LookedUpChain | None = None) -> Chosen:
        """The tree to verify in row order, of at most ``rows`` rows with the anchor, and the reason. ``chances``: those
        of the drafter's choices at each position; ``looked``: a chain that was looked up. At least one of the two is
        there."""
        raise NotImplementedError

    def numbers(self, context: int) -> ChoiceNumbers | None:
        """The numbers by which ``choose`` would choose; None verifies whole chains."""
        return None

    def observe(
        self,
        chances: Chances,
        tree: Sequence[Node],
        path: Sequence[int],
        context: int,
        outcome: LookupOutcome | None = None,
    ) -> None:
        """Learns what came of a round. ``chances`` are empty when nothing was drafted; ``path``: the rows that were
        accepted; ``outcome``: what the text says of a chain that could be looked up."""

    def alone_ms(self, context: int) -> float | None:
        """What a round of one row takes, where costs are known."""
        return None

    def observe_times(self, context: int, num_drafted: int, rows: int, draft_ms: float, verify_ms: float) -> None:
        """Learns what a round took that was begun at this context length: its draft of ``num_drafted`` tokens (0
        without one), and a pass over ``rows``."""


@dataclass(frozen=True, slots=True)
class Fixed(Policy):
    """Always a chain of the same width: ``block_size`` counts the anchor, so 16 verifies 15 drafted tokens."""

    block_size: int

    def wants_draft(self, context: int) -> bool:
        return self.block_size > 1

    def depth(self, context: int, counts: Sequence[int]) -> int:
        return min(self.block_size - 1, counts[-1])

    def choose(self, chances: Chances, context: int, rows: int = ROWS, looked: LookedUpChain | None = None) -> Chosen:
        return Chosen(chain(min(self.block_size, rows, len(chances) + 1) - 1, chances), UNWEIGHED)
