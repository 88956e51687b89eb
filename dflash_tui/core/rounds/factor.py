"""How many times as fast an answer came as its target alone, from its rounds: the one place that says so. Screens,
lines, statistics and exported pages ask here."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

from engine.events import Clock, Step
from engine.rounds.statistics import OneRowPair
from engine.rounds.store import RoundStore

from ..figures.speed_up import ENOUGH, MOST, SpeedUp, speed_up

LEAST_TOKENS = 16
"""An answer without speculation that is shorter says nothing of the target's speed."""
LEAST_ROUNDS = 12
"""An answer of fewer rounds has no factor that is about right: a few rounds say what chance made of them."""
LEAST_OWN = 3
"""An answer with fewer pairs of its own has a factor that is about right: its rounds may not cost what others did."""


@dataclass(frozen=True, slots=True)
class Around:
    """What is known of an answer's target from other answers."""

    pairs: tuple[OneRowPair, ...] = ()
    """The latest of the answers before it, by the same models with the same settings."""
    alone_ms: float | None = None
    """A token of an answer before it that was written without speculation."""


class Answered(NamedTuple):
    """An answer of the same target, as far as the next ones count with it."""

    costs: Hashable
    """What :func:`costs_of` says of it."""
    speculation: bool
    rounds: RoundStore
    around: Around


def around_of(costs: Hashable, before: Iterable[Answered]) -> Around:
    """What the answers ``before`` tell, the latest first, of one whose rounds cost ``costs``."""
    answers = list(before)
    latest = next((each for each in answers if each.speculation and each.costs == costs), None)
    alone = (alone_ms_of(each.rounds) for each in answers if not each.speculation)
    pairs = after(latest.around, latest.rounds) if latest is not None else ()
    return Around(pairs, next(filter(None, alone), None))


def after(around: Around, rounds: RoundStore) -> tuple[OneRowPair, ...]:
    """The pairs that the next answer begins with."""
    return (*around.pairs, *(rounds.pairs(-1) if len(rounds) else ()))[-MOST:]


def factor_of(rounds: RoundStore, index: int, around: Around, times: Clock = "engine") -> SpeedUp | None:
    """The factor of an answer with speculation after its step ``index``; None where nothing can be said."""
    answer, own = rounds.decoded(index), rounds.pairs(index)
    if times != "engine" and not answer.drafted:
        return None  # nobody knows of its rounds
    pairs: Sequence[OneRowPair] = own if len(own) >= ENOUGH else (*around.pairs, *own)
    elsewhere = len(own) < LEAST_OWN
    if not pairs and around.alone_ms is not None:
        pairs, elsewhere = rounds.pairs_with(around.alone_ms, index, MOST), True
    found = speed_up(answer, pairs, elsewhere=elsewhere)
    few = answer.drafted + answer.plain < LEAST_ROUNDS
    return None if found is not None and found.about and few else found


def alone_ms_of(rounds: RoundStore) -> float | None:
    """What a round took of an answer that was written without speculation; None for a short one."""
    if rounds.num_tokens < LEAST_TOKENS:
        return None
    return median(rounds.total_us[1:]) / 1000 or None


def costs_of(settings: Mapping[str, Any], drafter: str | None = None) -> Hashable:
    """What the cost of rounds depends on: it is alike where these are equal, for one target."""
    return (drafter, *(settings.get(name) for name in ("block_size", "draft_by")))


def factors(answers: Sequence[tuple[Mapping[str, Any], Iterable[Step]]], times: Clock) -> list[SpeedUp | None]:
    """The factors of a record's answers by one pair, each given by its settings and its steps, in their order."""
    made: list[SpeedUp | None] = []
    before: list[Answered] = []
    for settings, steps in answers:
        rounds, costs = RoundStore(steps), costs_of(settings)
        drafts, around = settings.get("speculation", True), around_of(costs, reversed(before))
        before.append(Answered(costs, drafts, rounds, around))
        made.append(factor_of(rounds, -1, around, times) if drafts and len(rounds) > 1 else None)
    return made
