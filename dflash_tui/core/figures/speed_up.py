"""How many times as fast an answer came as the target alone would have written it.

Both are counted with the same costs: a round's, and that of a pass over one row, measured side by side while the answer
was written. A busy machine makes both slower, so what is left is how many of the one the other takes. The target alone
takes as many passes as there are tokens. An answer takes its rounds, each of which costs no less than a pass over one
row, since it holds a pass over at least one. So the factor is never more than the tokens of a round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from statistics import median

from engine.rounds.statistics import Decoded, OneRowPair

ENOUGH = 12
"""Pairs that an answer needs to stand for itself; with fewer, those of the answers before it count, too."""
MOST = 32
"""Pairs that count at most, the latest."""
GOOD = 0.1
"""How far off, as a share of itself, a figure may be that isn't said to be about right."""
SURE = 2.0
"""How many standard errors that has to be."""
MAD_TO_DEVIATION, MEDIAN_NOISE = 1.4826, 1.05
"""A median of distances as a standard deviation, and the error of the centre used here beside that of a mean."""


@dataclass(frozen=True, slots=True)
class SpeedUp:
    """How many times as fast as the target alone."""

    times: float
    about: bool = False
    """Whether it may be off by more than a tenth."""

    def as_text(self, digits: int = 1) -> str:
        """The number for people, such as ``2.4`` or ``about 2.4``."""
        return f"{'about ' * self.about}{self.times:.{digits}f}"

    @property
    def words(self) -> str:
        """The same with what it counts, such as ``2.4× as fast`` or ``0.9×, slower``."""
        return f"{self.as_text()}×{', slower' if self.loses else ' as fast'}"

    @property
    def remark(self) -> str:
        """What is to be said behind words that stand beside the number: that it is about right, that it is a loss."""
        return f"{' (about)' * self.about}{', slower' * self.loses}"

    @property
    def loses(self) -> bool:
        """Whether the target alone would have been faster, as far as the number that people see says so."""
        return round(self.times, 1) < 1


def speed_up(answer: Decoded, pairs: Sequence[OneRowPair], *, elsewhere: bool = False) -> SpeedUp | None:
    """The factor of an answer, None where nothing can be said. ``pairs``: the latest ``MOST`` count; ``elsewhere``:
    whether the passes over one row were taken outside the answer, perhaps under another load."""
    if not answer.tokens or not answer.drafted + answer.plain:
        return None
    if not answer.drafted:
        return SpeedUp(answer.tokens / answer.plain)
    pairs = pairs[-MOST:]
    if not pairs:
        return None
    costs = [pair.drafted * (1 + answer.rest) / (pair.one_row + pair.drafted * answer.rest) for pair in pairs]
    # Rows cost something each, and pairs may have had others than the answer. A wider pass is never the cheaper one.
    rows = [pair.rows for pair in pairs]
    both = combinations(zip(rows, costs, strict=True), 2) if len(set(rows)) > 1 else ()
    slopes = [(b - a) / (wide - narrow) for (narrow, a), (wide, b) in both if wide != narrow]
    row = max(median(slopes), 0.0) if len(slopes) >= ENOUGH else 0.0
    costs = sorted(cost + row * (answer.rows - at) for at, cost in zip(rows, costs, strict=True))
    centre = median([(a + b) / 2 for place, a in enumerate(costs) for b in costs[place:]])
    spread = MAD_TO_DEVIATION * median(abs(cost - centre) for cost in costs)
    good = len(costs) >= ENOUGH and SURE * MEDIAN_NOISE * spread / sqrt(len(costs)) <= GOOD * centre
    # A round that seems cheaper than its pass over one row is noise: then both cost the same.
    rounds = answer.plain + answer.drafted * max(centre, 1.0)
    return SpeedUp(answer.tokens / rounds, elsewhere or not good)
