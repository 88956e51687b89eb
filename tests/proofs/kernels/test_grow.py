"""The tree that the device chooses is the policy's."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from engine.kernels.round import state
from engine.kernels.toolchain.jit import INTERPRETED
from engine.speculation.auto import Auto
from engine.speculation.costs import CostTable, RoundCosts
from engine.speculation.lookup import LookedUpChain
from engine.speculation.trees import CHOICES, LOOKED_UP, Chances, Lattice, Node, choices_of
from tests.kernels.drawn_trees import drawn_chances, drawn_lattice
from tests.kernels.tree_rounds import Grown, token_at

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

FLAT = CostTable((0,), (RoundCosts(2.0, tuple(16.0 + row / 8 for row in range(16))),))
STEPPED = CostTable((0,), (RoundCosts(1.0, tuple(4.0 + (row // 4) / 2 for row in range(16))),))
DEAR = CostTable((0,), (RoundCosts(0.75, tuple(2.25 + 0.5 * row for row in range(16))),))


@pytest.mark.parametrize("table", [FLAT, STEPPED, DEAR], ids=["flat", "stepped", "dear"])
@pytest.mark.parametrize("seed", (0, 2, 4, 6, 7))
@pytest.mark.parametrize("drawn", [drawn_chances, drawn_lattice])
def test_it_grows_the_tree_of_the_policy(
    drawn: Callable[[random.Random, int], Chances], table: CostTable, seed: int
) -> None:
    rng = random.Random(seed)
    policy = Auto(table)
    for _ in range(seed * 5):  # some experience
        for calibration in (policy.worth.first, policy.worth.others):
            calibration.observe(rng.random(), rng.random() < 0.5)
    chances = drawn(rng, 15 if seed < 4 else rng.randint(1, 15))
    rows = rng.randint(len(chances) + 1, 16)
    chosen = policy.choose(chances, 0, rows)
    result = Grown.of(policy, chances, rows=rows)
    result.check(chosen.tree, chances)
    result.check_choice(chosen)


@pytest.mark.parametrize("table", [FLAT, DEAR], ids=["flat", "dear"])
@pytest.mark.parametrize("seed", range(2, 10))
@pytest.mark.parametrize("drawn", [drawn_chances, drawn_lattice])
def test_what_was_looked_up_is_in_the_tree_as_in_the_policys(
    drawn: Callable[[random.Random, int], Chances], table: CostTable, seed: int
) -> None:
    """Chains that agree with choices, here and there or nowhere, of matches that are worth much or little."""
    rng = random.Random(seed)
    policy = Auto(table)
    for _ in range(4 * seed):
        policy.worth.matches.observe(rng.randint(3, 32), rng.random() < (0.2, 0.9)[seed % 2])
        policy.worth.first.observe(rng.random(), rng.random() < 0.5)
    chances = drawn(rng, rng.choice([2, 9, 15]))
    wide = 16 if isinstance(chances, Lattice) else CHOICES
    most, size = rng.choice([0, 1, wide]), rng.randint(1, len(chances))
    guess = [token_at(position, rng.choice([rng.randint(0, most), wide])) for position in range(size)]
    candidates = [[token_at(position, place) for place in range(wide)] for position in range(len(chances))]
    looked = LookedUpChain(rng.choice([3, 6, 12, 32]), size, 0, *choices_of(guess, candidates, chances))
    chosen = policy.choose(chances, 0, 16, looked)
    result = Grown.of(policy, chances, looked=looked, rows=16, guess=guess)
    result.check(chosen.tree, chances, guess)
    result.check_choice(chosen)
    result.check_beside(looked, chosen)


@pytest.mark.parametrize("seed", range(6))
def test_of_equal_chances_it_takes_the_same_ones(seed: int) -> None:
    """Powers of two, of which fp32 sums and products are exact, and with them many equal ones; also none at all."""
    rng = random.Random(seed)
    policy, values = Auto(FLAT), [0.5, 0.25, 0.25, 0.125, 0.0]
    chances = [sorted(rng.sample(values, CHOICES), reverse=True) for _ in range(rng.choice([3, 15]))]
    chosen = policy.choose(chances, 0, len(chances) + 1)
    result = Grown.of(policy, chances)
    result.check(chosen.tree, chances)
    result.check_choice(chosen)


@pytest.mark.parametrize("positions", [1, 2, 15])
def test_without_a_policy_first_choices_make_a_chain(positions: int) -> None:
    chances = [[0.0, 0.0, 0.0, 0.0]] * positions
    Grown.of(None, chances).check([Node(row, row + 1, 0, 1.0) for row in range(positions)], chances)


@pytest.mark.parametrize("width", [0, 1])
def test_a_round_without_drafts_is_left_alone(width: int) -> None:
    result = Grown.of(Auto(FLAT), [], width=width)
    assert int(result.state.width) == width and (result.ids == 7).all() and (result.state.record == 0).all()


def test_a_round_without_room_looks_nothing_up() -> None:
    """What the round before looked up does not stay in the record: the host would read it as this one's."""
    looked = LookedUpChain(12, 2, 0, (LOOKED_UP, LOOKED_UP))
    before = Grown.of(Auto(FLAT), [[0.5, 0.2, 0.1, 0.1]] * 15, looked=looked, guess=[1, 2])
    result = Grown.of(Auto(FLAT), [], width=1, looked=looked, state=before.state, guess=[1, 2])
    assert int(result.state.width) == 1 and result.state.record[state.LOOKED_UP :][0] == 0


def test_a_try_looks_at_one_draft_whatever_its_chance() -> None:
    policy = Auto(DEAR)
    policy.backoff.is_resting = True
    assert policy.wants_draft(0) and policy.backoff.is_trying
    for first in (0.0, 1.0):
        chances = [[first, 0.0, 0.0, 0.0]] * 15
        Grown.of(policy, chances).check([Node(0, 1, 0, first)], chances)
