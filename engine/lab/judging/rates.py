"""Tokens per second of policies over recorded answers, with an interval."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .play import Played

RESAMPLES = 400


class PolicyRate(NamedTuple):
    """Tokens per second over several answers, with the bounds of its 95 % interval."""

    tok_s: float
    low: float
    high: float


def rate_of(played: Sequence[Played]) -> PolicyRate:
    """All tokens divided by all time, with a bootstrap interval over whole answers, since rounds of one text are
    alike."""
    rng = random.Random(0)

    def total(indices: Iterable[int]) -> float:
        chosen = [played[index] for index in indices]
        return 1e3 * sum(each.tokens for each in chosen) / sum(each.milliseconds for each in chosen)

    count = len(played)
    drawn = sorted(total(rng.choices(range(count), k=count)) for _ in range(RESAMPLES))
    return PolicyRate(total(range(count)), drawn[int(0.025 * RESAMPLES)], drawn[int(0.975 * RESAMPLES)])
