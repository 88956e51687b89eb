"""Rounds of 32 and 64 rows while a text is copied: when they are worth it, and how soon they end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.lab.judging.play import Played, RecordedDraft, RecordedLookup, play
from engine.speculation.auto import Auto
from engine.speculation.choice import LookupOutcome, RoundPlan
from engine.speculation.costs import CostTable, RoundCosts
from engine.speculation.lookup import LONGEST, LookedUpChain
from engine.speculation.trees import ROWS, WIDE_ROWS

COUNT = 600
MOST = WIDE_ROWS[-1]


def table(row_ms: float, wide_row_ms: float) -> CostTable:
    """A pass of one row takes two milliseconds, each further one so much, and behind the sixteenth so much."""
    narrow = [2.0 + row_ms * row for row in range(ROWS)]
    wide = [narrow[-1] + wide_row_ms * (row + 1) for row in range(MOST - ROWS)]
    return CostTable((0,), (RoundCosts(0.5, (*narrow, *wide), 0.01, 0.02),))


CHEAP, DEAR = table(0.3, 0.08), table(0.3, 0.9)


def narrow(costs: CostTable) -> CostTable:
    return CostTable(costs.contexts, tuple(replace(each, verify=each.verify[:ROWS]) for each in costs.costs))


def copy_of(*stretches: int) -> list[RecordedLookup]:
    """Stretches that are copied, each with one token behind it that is not; a chain goes on beyond that."""
    places = []
    for stretch in stretches:
        places += [
            RecordedLookup(min(3 + at, LONGEST), MOST - 1, min(stretch - at, MOST - 1)) for at in range(stretch + 1)
        ]
    return places


def played(costs: CostTable, looked_up: list[RecordedLookup]) -> Played:
    policy = Auto(costs)
    policy.begin(drafts=False)
    return play(policy, [RecordedDraft((), 0)] * len(looked_up), costs, 0, looked_up)


def test_a_long_copy_takes_wide_rounds_where_rows_are_cheap() -> None:
    copy = copy_of(COUNT)
    assert played(narrow(CHEAP), copy).milliseconds / played(CHEAP, copy).milliseconds > 1.6
    assert played(CHEAP, copy).rounds < COUNT / MOST + 6


def test_rows_that_cost_more_than_they_yield_are_not_run() -> None:
    copy = copy_of(COUNT)
    assert played(DEAR, copy) == played(narrow(DEAR), copy)


@pytest.mark.parametrize("stretch", [10, 20, 40, 80, 160])
def test_short_copies_lose_nothing_by_it(stretch: int) -> None:
    copy = copy_of(*[stretch] * (COUNT // stretch))
    assert played(narrow(CHEAP), copy).milliseconds / played(CHEAP, copy).milliseconds > 0.99


def test_rows_double_with_every_round_that_is_kept_and_fall_at_once() -> None:
    policy = Auto(CHEAP)
    policy.begin(drafts=False)
    seen = []
    for right in (15, 31, 63, 63, 40, 15, 31):
        plan = policy.plan(0, LONGEST)
        assert plan == RoundPlan(False, True, plan.rows)
        seen.append(plan.rows)
        tree, _, looked_up, _ = policy.choose((), 0, plan.rows, LookedUpChain(LONGEST, plan.rows - 1))
        assert looked_up and len(tree) == plan.rows - 1
        policy.observe((), tree, range(1, right + 1), 0, LookupOutcome(LONGEST, right, right < len(tree), True))
    assert seen == [16, 32, 64, 64, 64, 16, 32]
    policy.begin(drafts=False)
    assert policy.plan(0, LONGEST).rows == ROWS
