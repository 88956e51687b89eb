"""How many tokens to draft where each takes a pass of the drafter, or a row."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.speculation.auto import Auto
from engine.speculation.costs import CostTable, RoundCosts
from engine.speculation.depth import VERIFIED, DraftDepth

COUNTS = (1, 2, 3, 4, 6, 8, 11, 15)
FLAT = RoundCosts(0.1, (5.0,) * 16, step=0.2, one_by_one=True)


def told(kept: list[int], verified: int) -> DraftDepth:
    depth = DraftDepth()
    for number in kept:
        depth.observe(number, verified)
    return depth


def test_good_drafts_are_worth_more_passes() -> None:
    price = 1 / 5.0
    depths = [told([kept] * 30, 4).best(FLAT, price, COUNTS) for kept in (0, 1, 2, 3, 4)]
    assert depths == sorted(depths) and depths[0] == 1 and depths[-1] > 8


@given(st.lists(st.integers(0, 4), max_size=20), st.floats(0.01, 1.0), st.floats(0.05, 2.0), st.booleans())
def test_the_best_of_all_is_chosen(kept: list[int], price: float, step: float, one_by_one: bool) -> None:
    """By the definition: what the chances to be kept add up to, less what drafts cost, and the target's rows: of a
    block as many as are verified."""
    verify = tuple(3.0 + 0.3 * row for row in range(16))
    depth, costs = told(kept, 4), RoundCosts(0.0, verify, step=step, one_by_one=one_by_one)

    def worth(count: int) -> float:
        row = verify[count] * (1 if one_by_one else VERIFIED)
        return sum(depth.chance**place for place in range(count + 1)) - price * (step * count + row)

    assert worth(depth.best(costs, price, COUNTS)) == pytest.approx(max(map(worth, COUNTS)))


def test_a_block_whose_rows_are_free_is_drafted_whole() -> None:
    parallel = CostTable((0,), (RoundCosts(0.5, (5.0,) * 16),))
    assert Auto(parallel).depth(0, COUNTS) == 15


def test_a_block_is_short_where_the_targets_rows_are_dear() -> None:
    dear, cheap = (
        RoundCosts(8.0, tuple(27.0 + row * each for row in range(16)), step=0.5) for each in (7.0, 0.5)
    )  # milliseconds of SmolLM2 without VNNI, and of the bundled pair
    drafted = [told([1] * 10, 3).best(costs, 1 / costs.rest, COUNTS) for costs in (dear, cheap)]
    assert drafted[0] <= 4 < drafted[1]


def test_what_drafts_cost_counts_for_the_rest() -> None:
    """Dear drafts that are seldom right end in plain decoding; the same drafts, free, don't."""
    verify = tuple(4.0 + 0.1 * row for row in range(16))
    chances = ((0.5,),) * 3
    drafting = []
    for step in (0.01, 3.0):
        policy = Auto(CostTable((0,), (RoundCosts(0.05, verify, 0.01, step=step),)))
        wanted = 0
        for number in range(40):
            if policy.wants_draft(0):
                wanted += 1
                tree, *_ = policy.choose(chances, 0, 4)
                policy.observe(chances, tree, [1] if number % 2 and tree else [], 0)
            else:
                policy.observe((), (), (), 0)
        drafting.append(wanted)
    assert drafting[0] > 30 > 15 > drafting[1]
