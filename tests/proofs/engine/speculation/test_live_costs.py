"""Costs that were timed while the machine was busy: what they make of an answer lasts for an answer or two."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import pytest

from engine.lab.judging.play import RecordedDraft, play
from engine.speculation.auto import Auto
from engine.speculation.costs import CostTable, RoundCosts
from engine.speculation.live_costs import LiveCosts

EXPERTS = RoundCosts(2.0, tuple(10.0 + 1.2 * row for row in range(16)), 0.05, 0.2)
DENSE = RoundCosts(3.0, tuple(10.0 + 0.1 * row for row in range(16)), 0.05, 0.2)
BUSY = 5.0
SLOW = 6.0
ANSWERS, TOKENS = 4, 500


@cache
def text(right: float) -> list[RecordedDraft]:
    """A drafter that is right at so many of the first places behind each token, and knows by how much."""
    rng = random.Random(5)
    anchors = []
    for position in range(TOKENS):
        confidences = tuple(min(max(rng.gauss(right, 0.1), 0.05), 0.99) for _ in range(min(15, TOKENS - position)))
        num_right = next((i for i, each in enumerate(confidences) if rng.random() > each), len(confidences))
        anchors.append(RecordedDraft(confidences, num_right))
    return anchors


def wrong(costs: RoundCosts, part: str) -> RoundCosts:
    """As timed where others had the machine for a while."""
    verify = costs.verify
    match part:
        case "draft":
            return replace(costs, draft=BUSY * costs.draft, lookup=BUSY * costs.lookup, ingest=BUSY * costs.ingest)
        case "passes":
            return replace(costs, verify=(verify[0], *(BUSY * each for each in verify[1:])))
        case "wide passes":
            return replace(costs, verify=(*verify[:4], *(BUSY * each for each in verify[4:])))
        case "plain":
            return replace(costs, verify=tuple(max(BUSY * verify[0], each) for each in verify))
    return replace(wrong(costs, "passes"), draft=BUSY * costs.draft)


def slowed(costs: RoundCosts) -> RoundCosts:
    """The same machine, with others on it for as long as answers are written."""
    verify = tuple(SLOW * each for each in costs.verify)
    return RoundCosts(SLOW * costs.draft, verify, SLOW * costs.ingest, SLOW * costs.lookup)


def rates(policy: Auto, right: float, costs: RoundCosts) -> list[float]:
    """Tokens a second of each answer, all of the same text."""
    found = []
    for _ in range(ANSWERS):
        policy.begin()
        found.append(play(policy, text(right), CostTable((0,), (costs,))).tok_s)
    return found


@pytest.mark.parametrize(("costs", "right"), [(EXPERTS, 0.8), (DENSE, 0.4)], ids=["experts", "dense"])
@pytest.mark.parametrize("part", ["draft", "passes", "wide passes", "plain", "all but plain"])
@pytest.mark.parametrize(("slow", "share"), [(False, 0.97), (True, 0.9)], ids=["as fast", "slower"])
def test_costs_heal_while_answers_are_written(
    slow: bool, share: float, part: str, right: float, costs: RoundCosts
) -> None:
    """On a machine as fast as when they were timed, or slower."""
    now = slowed(costs) if slow else costs
    told = rates(Auto(CostTable((0,), (now,))), right, now)
    healed = rates(Auto(CostTable((0,), (wrong(costs, part),)), live=LiveCosts()), right, now)
    assert sum(healed[2:]) > share * sum(told[2:])


@pytest.mark.parametrize(("costs", "right"), [(EXPERTS, 0.4), (DENSE, 0.8)], ids=["experts", "dense"])
def test_where_nothing_was_wrong_it_costs_next_to_nothing(costs: RoundCosts, right: float) -> None:
    table = CostTable((0,), (costs,))
    told, checked = (rates(Auto(table, live=each), right, costs) for each in (None, LiveCosts()))
    assert sum(checked[2:]) > 0.995 * sum(told[2:])


def test_a_machine_that_is_busy_now_changes_nothing() -> None:
    costs = LiveCosts()
    for rows in (1, 2, 5, 16) * 3:
        costs.observe(EXPERTS, 15, rows, BUSY * EXPERTS.draft, BUSY * EXPERTS.verify[rows - 1])
        assert costs.corrected(EXPERTS) is EXPERTS


def test_passes_that_an_answer_had_none_of_are_checked_in_the_next() -> None:
    """Whatever earlier answers had."""
    costs = LiveCosts()
    for seen, unseen in (((1, 16), []), ((16,), [1]), ((1,), [16])):
        for rows in seen * 5000:
            costs.observe(EXPERTS, 0, rows, 0.0, EXPERTS.verify[rows - 1])
        assert costs.begin(EXPERTS) == unseen
