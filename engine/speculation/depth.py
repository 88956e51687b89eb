"""How many tokens to draft where each costs something: a pass of the drafter, or, of a block on a CPU, a row. It must
be settled before the first is drafted, so it goes by what became of drafts lately, not by their confidence. Standard
library only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .costs import RoundCosts

MEMORY = 0.9
"""Weight that the past keeps, per round: about the last ten count."""
PRIOR, PRIOR_WEIGHT = 0.8, 8.0
"""An answer begins as if so many drafts had been judged, and this share of them kept: a few rounds with some depth."""
VERIFIED = 0.5
"""Of a block's drafts: their confidence says which are worth a row of the target's. Where such rows are dear, few are,
and the others were drafted for nothing."""


@dataclass(slots=True)
class DraftDepth:
    """A draft is kept with the same chance wherever it stands, once all before it were; which one, this answer tells.
    A further draft is worth its chance to be reached and kept."""

    _kept: float = PRIOR * PRIOR_WEIGHT
    _judged: float = PRIOR_WEIGHT

    @property
    def chance(self) -> float:
        """That a draft is kept whose predecessors were."""
        return self._kept / self._judged

    def observe(self, num_kept: int, num_verified: int) -> None:
        """What came of a round's chain: so many kept, and one refused where more were verified."""
        judged = min(num_kept + 1, num_verified)
        self._kept = MEMORY * self._kept + (1 - MEMORY) * PRIOR + num_kept
        self._judged = MEMORY * self._judged + (1 - MEMORY) + judged

    def best(self, costs: RoundCosts, price: float, counts: Sequence[int]) -> int:
        """The one of ``counts``, ascending, with the highest worth: tokens expected, less the milliseconds at so many
        tokens each. A draft that takes a pass costs that and a row of the target's; one of a block its own row and
        ``VERIFIED`` of the target's. At least the first, for whoever drafts at all."""
        verified = 1.0 if costs.one_by_one else VERIFIED
        reached, tokens, worth = 1.0, 1.0, {}
        for count in range(1, counts[-1] + 1):
            reached *= self.chance
            tokens += reached
            worth[count] = tokens - price * (costs.step * count + verified * costs.verify[count])
        return max(counts, key=worth.__getitem__)
