"""How many times as fast an answer came, where the load of the machine is a script and nobody waits for a clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from dflash_tui.core.figures.labels import AS_FAST
from dflash_tui.core.figures.speed_up import SpeedUp
from dflash_tui.core.rounds.factor import Around, after, factor_of, factors
from engine.events import Step
from engine.rounds.store import RoundStore
from engine.speculation.one_row import OneRowPasses
from support.events_for_tests import make_step

ONE_ROW, DRAFT, ROW, REST = 5.0, 2.0, 0.25, 0.5
"""Milliseconds on a quiet machine: a pass over one row, a draft, a further row of a pass, and all else of a round."""
Load = Callable[[float], float]
"""How many times as long everything takes at a moment, in milliseconds since the answer began."""


@dataclass
class Machine:
    """Plays an answer round by round as the engine runs one, at the speed that the load leaves."""

    load: Load
    random: Random
    now: float = 0.0
    passes: OneRowPasses = field(default_factory=OneRowPasses)

    def take(self, quiet_ms: float) -> float:
        """Spend the time of something; returns how long it took."""
        took = quiet_ms * self.load(self.now) * self.random.uniform(0.93, 1.07)
        took *= 4 if self.random.random() < 0.03 else 1  # something else had the processor
        self.now += took
        return took

    def answer(self, rounds: int) -> Iterator[tuple[Step, float]]:
        """The steps of an answer, each with what it would have taken on a quiet machine."""
        self.passes.begin()
        self.now = 0.0
        yield replace(make_step(0, 0, index=0, time=0.0), total_ms=0.0), 0.0
        for index in range(1, rounds + 1):
            alone = self.take(ONE_ROW) if self.passes.due else None
            self.passes.count(drafted=True, passed=alone is not None)
            drafted = self.random.choice((3, 7, 15))
            accepted = self.random.randrange(drafted + 1)
            quiet = DRAFT + ONE_ROW + ROW * drafted
            took = self.take(quiet)
            self.take(REST)
            step = make_step(accepted, drafted, index=index, time=self.now / 1000)
            yield replace(step, draft_ms=0.0, verify_ms=took, total_ms=took, alone_ms=alone), quiet + REST


def truth(played: Sequence[tuple[Step, float]]) -> float:
    """What the script knows: the same tokens one by one, on the same machine."""
    tokens = sum(len(step.emitted) for step, _ in played[1:])
    return tokens * (ONE_ROW + REST) / sum(quiet for _, quiet in played)


LOADS: dict[str, Load] = {
    "quiet": lambda now: 1.0,
    "quiet, then busy": lambda now: 1.0 if now < 500 else 5.0,
    "busy, then quiet": lambda now: 5.0 if now < 1500 else 1.0,
    "in waves": lambda now: 4.0 if now % 300 < 150 else 1.0,
    "a slow first second": lambda now: 8.0 if now < 1000 else 1.0,
}


@pytest.mark.parametrize("load", LOADS.values(), ids=list(LOADS))
@pytest.mark.parametrize("seed", range(5))
def test_a_factor_is_right_within_a_tenth_under_any_load(load: Load, seed: int) -> None:
    played = list(Machine(load, Random(seed)).answer(200))
    history = RoundStore(step for step, _ in played)
    found = factor_of(history, -1, Around())
    assert found is not None and found.times == pytest.approx(truth(played), rel=0.1)
    assert found.times <= (history.num_tokens - 1) / 200
    spent = sum(step.alone_ms or 0.0 for step, _ in played)
    assert spent <= 0.06 * played[-1][0].time * 1000, "few passes are taken to compare"


def test_it_is_about_right_until_enough_was_measured_and_then_stays_in_sight() -> None:
    machine, around = Machine(LOADS["quiet"], Random(1)), Around()
    assert factor_of(RoundStore([make_step(0, 0, index=0), make_step(2, 5)]), -1, around) is None, "nothing to say"
    short = RoundStore(step for step, _ in machine.answer(8))
    assert factor_of(short, -1, around) is None, "too few rounds"
    first = RoundStore(step for step, _ in machine.answer(12))
    found = factor_of(first, -1, around)
    assert found is not None and found.about
    around = Around(after(around, first))
    for _ in range(4):
        history = RoundStore(step for step, _ in machine.answer(60))
        found = factor_of(history, -1, around)
        around = Around(after(around, history))
    assert found is not None and not found.about


def test_a_heading_is_a_sentence() -> None:
    assert f"times {AS_FAST}{SpeedUp(0.4, True).remark}" == "times as fast as the target alone (about), slower"


def test_rounds_that_seem_cheaper_than_a_pass_over_one_row_are_noise() -> None:
    steps = [replace(make_step(3, 5, index=index, time=index / 100), alone_ms=50.0) for index in range(13)]
    found = factor_of(RoundStore(steps), -1, Around())
    assert found is not None and found.times == 4.0, "tokens of a round, and never more"


def test_a_record_with_an_answer_of_the_target_alone_is_held_against_it() -> None:
    def answer(drafted: int) -> list[Step]:
        return [make_step(drafted, drafted, index=index, time=index / 100) for index in range(20)]

    alone = [replace(step, total_ms=2.0) for step in answer(0)]
    told = factors([({"speculation": False}, alone), ({}, answer(3))], "engine")
    assert told[0] is None and told[1] is not None and told[1].about
    # Rounds of 3 ms and 7 ms of all else, against passes of 2 ms and as much else.
    assert told[1].times == pytest.approx(4 * (2 + 7) / (3 + 7))
    assert factors([({}, answer(0))], "arrival") == [None], "a server whose rounds nobody knows"
