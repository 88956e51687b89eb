"""What a policy yields on recorded drafts, with its uncertainty."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ..speculation.costs import CostTable
from ..speculation.verify_width import Policy
from .files import Recording
from .play import Played, play

RESAMPLES = 400


class Rate(NamedTuple):
    """Tokens per second over several answers, with the bounds of its 95 % interval."""

    tok_s: float
    low: float
    high: float


def rate(policy: Callable[[], Policy], recordings: Sequence[Recording], table: CostTable, seed: int = 0) -> Rate:
    """What a policy yields, each answer begun by a policy made for it."""
    return rate_of([play(policy(), each.anchors, table, each.prompt_length) for each in recordings], seed)


def rate_of(played: Sequence[Played], seed: int = 0) -> Rate:
    """All tokens over all time, with a bootstrap interval over whole answers, since rounds of one text are alike."""
    rng = random.Random(seed)

    def total(indices: Iterable[int]) -> float:
        chosen = [played[index] for index in indices]
        return 1e3 * sum(each.tokens for each in chosen) / sum(each.milliseconds for each in chosen)

    count = len(played)
    drawn = sorted(total(rng.choices(range(count), k=count)) for _ in range(RESAMPLES))
    return Rate(total(range(count)), drawn[int(0.025 * RESAMPLES)], drawn[int(0.975 * RESAMPLES)])
