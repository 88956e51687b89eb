"""Decides how many tokens to draft where each costs something: a pass of the drafter, or, of a block on a CPU, a row.
It must be settled before the first is drafted, so it goes by how recent drafts fared, not by their confidence. Standard
library only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .costs import RoundCosts

MEMORY = 0.9
"""The factor by which the past fades in each round: about the last ten count."""
PRIOR, PRIOR_WEIGHT = 0.8, 8.0
"""An answer begins as if ``PRIOR_WEIGHT`` drafts had been judged and this share of them kept, which gives it a few
rounds with some depth."""
VERIFIED = 0.5
"""The share of a block's drafts that is expected to be verified. Their confidence says which are worth a row of the
target's; where such rows are dear few are, and the others were drafted for nothing."""


@dataclass(slots=True)
class DraftDepth:
    """Models a draft as kept with the same chance wherever it stands, once all before it were; this answer's rounds
    tell the chance. A further draft is worth its chance to be reached and kept."""

    _accepted_share: float = PRIOR * PRIOR_WEIGHT
    _judged: float = PRIOR_WEIGHT

    @property
    def chance(self) -> float:
        """The chance that a draft is kept whose predecessors were."""
        return self._accepted_share / self._judged

    def observe(self, num_kept: int, num_verified: int) -> None:
        """Learns from a round's chain: ``num_kept`` drafts were kept, and the next one was refused where more were
        verified."""
        judged = min(num_kept + 1, num_verified)
        self._accepted_share = MEMORY * self._accepted_share + (1 - MEMORY) * PRIOR + num_kept
        self._judged = MEMORY * self._judged + (1 - MEMORY) + judged

    def best(self, costs: RoundCosts, price: float, counts: Sequence[int]) -> int:
        """The one of ``counts``, ascending, that is worth most: tokens expected, less the milliseconds at ``price``
        tokens each. A draft that takes a pass costs that and a row of the target's; one of a block costs its own row
        and ``VERIFIED`` of the target's. It is never less than the first of ``counts``."""
        verified = 1.0 if costs.one_by_one else VERIFIED
        reached, tokens, worth = 1.0, 1.0, {}
        for count in range(1, counts[-1] + 1):
            reached *= self.chance
            tokens += reached
            worth[count] = tokens - price * (costs.step * count + verified * costs.verify[count])
        return max(counts, key=worth.__getitem__)
