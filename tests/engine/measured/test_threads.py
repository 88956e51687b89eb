"""How many threads rounds take, as machines become busy and quiet again."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, pairwise

import pytest

from engine.measured.threads import BESIDE_ROWS, ThreadChoice

Cost = Callable[[int], float]
"""Milliseconds of a row's worth of work with so many threads."""


def quiet(threads: int) -> float:
    return 4.0 / threads


def busy(threads: int) -> float:
    return 4.0 if threads == 1 else 40.0


def run(choice: ThreadChoice, cost: Cost, seconds: float) -> dict[int, float]:
    """The seconds that rounds of differing widths ran with each number of threads."""
    spent = {1: 0.0, 2: 0.0}
    for rows in cycle((1, 4, 1, 16, 2)):
        if sum(spent.values()) > seconds:
            return spent
        took = cost(choice.current) * (BESIDE_ROWS + rows)
        spent[choice.current] += took / 1e3
        choice.observe_times(took, rows)
    raise AssertionError


def test_a_quiet_machine_gives_all_cores_and_a_busy_one_all_but_one() -> None:
    told: list[int] = []
    choice = ThreadChoice(1, 2, told.append)
    assert run(choice, quiet, 30)[1] < 2
    assert run(choice, busy, 30)[2] < 4  # a trial ends with its first round
    assert run(choice, quiet, 30)[1] < 12
    assert choice.preferred == 2 and told[0] == 2 and all(one != other for one, other in pairwise(told))


@pytest.mark.parametrize("gain", [1.0, 0.95])
def test_a_difference_within_noise_changes_nothing(gain: float) -> None:
    choice = ThreadChoice(1, 2, lambda _: None)
    run(choice, lambda threads: 4.0 * (gain if threads == 2 else 1), 30)
    assert choice.preferred == 1


def test_trials_become_rare() -> None:
    choice = ThreadChoice(1, 2, lambda _: None)
    run(choice, lambda threads: 4.0, 30)
    assert run(choice, lambda threads: 4.0, 60)[2] < 2
