"""The choice of how much to verify: arithmetic, learning, resting, and the texts it must not lose on."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from operator import mul

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.lab.judging.play import RecordedDraft, play
from engine.speculation.auto import Auto
from engine.speculation.calibration import Calibration
from engine.speculation.costs import CostTable, RoundCosts
from engine.speculation.policy import Fixed
from engine.speculation.trees import chain
from tests.proofs.engine.recorded import recorded_tables

DENSE = CostTable((0,), (RoundCosts(1.6, tuple(16.8 + 0.02 * row for row in range(16))),))
"""A dense model: a pass over 16 rows costs hardly more than over one."""
EXPERTS = CostTable((0,), (RoundCosts(0.75, tuple(2.3 + 0.54 * row for row in range(16))),))
"""A mixture of experts: every row brings experts of its own."""
RECORDED = recorded_tables()
TABLES = {"dense": DENSE, "experts": EXPERTS, **RECORDED}


@cache
def drafts(count: int, chance: float, seed: int) -> list[RecordedDraft]:
    """Drafts whose confidence scatters around ``chance`` and says exactly how likely they are."""
    rng = random.Random(seed)
    anchors = []
    for _ in range(count):
        confidences = tuple(min(max(rng.gauss(chance, 0.12), 0.02), 0.99) for _ in range(15))
        right = [rng.random() < confidence for confidence in confidences]
        anchors.append(RecordedDraft(confidences, right.index(False) if False in right else 15))
    return anchors


def wrong(count: int, confidence: float) -> list[RecordedDraft]:
    return [RecordedDraft((confidence,) * 15, 0)] * count


def one_choice(confidences: Sequence[float]) -> tuple[tuple[float, ...], ...]:
    """Chances of positions that have one choice each."""
    return tuple((each,) for each in confidences)


def test_costs_between_two_contexts_grow_evenly() -> None:
    table = CostTable((100, 200), (RoundCosts(1, (2, 4)), RoundCosts(3, (6, 12))))
    assert table.at(150) == RoundCosts(2, (4, 8))
    assert table.at(0) == table.at(100) == RoundCosts(1, (2, 4))
    assert table.at(200) == table.at(9999) == RoundCosts(3, (6, 12))
    assert table.at(100).plain == 2 and table.at(100).round(1) == 5


@given(st.lists(st.floats(0, 1), min_size=1, max_size=15), st.sampled_from(sorted(TABLES)))
def test_the_choice_is_the_width_worth_most(confidences: list[float], name: str) -> None:
    auto = Auto(TABLES[name])
    tree, choice, *_ = auto.choose(one_choice(confidences), 0)
    assert choice is not None
    costs = TABLES[name].at(0)
    kept = list(accumulate(confidences, mul))  # nothing was observed yet: confidence is the chance
    worth = [1 + sum(kept[:width]) - choice.tok_s / 1e3 * costs.verify[width] for width in range(len(confidences) + 1)]
    edge = min(len(tree), len(kept) - 1)
    assert choice.chance == pytest.approx(kept[edge])
    assert choice.cost_ms == costs.verify[edge + 1] - costs.verify[edge]
    assert worth[len(tree)] == pytest.approx(max(worth))


def test_a_sure_draft_is_verified_whole_and_a_doubtful_one_is_not() -> None:
    auto = Auto(EXPERTS)
    sure, doubtful, even = (one_choice([confidence] * 15) for confidence in (0.99, 0.01, 0.5))
    assert len(auto.choose(sure, 0).tree) == 15
    assert not auto.choose(doubtful, 0).tree
    assert len(Auto(DENSE).choose(even, 0)[0]) > len(auto.choose(even, 0)[0])


def test_confidence_is_worth_what_was_seen_of_it() -> None:
    calibration = Calibration()
    assert calibration.chance(0.85) == pytest.approx(0.85)
    for index in range(400):
        calibration.observe(0.85, accepted=index % 2 == 0)
    assert calibration.chance(0.85) == pytest.approx(0.5, abs=0.06)
    assert calibration.chance(0.82) < calibration.chance(0.89)
    assert calibration.chance(0.25) == pytest.approx(0.25)


def test_only_reached_positions_teach() -> None:
    """A draft behind the first that fell, or that was not verified, says nothing."""
    auto = Auto(EXPERTS)
    auto.observe(one_choice([0.95, 0.75, 0.55, 0.35]), chain(3), [1], context=0)
    auto.observe(one_choice([0.95, 0.75, 0.15, 0.35]), chain(2), [1, 2], context=0)
    assert auto.worth.first.chance(0.55) == pytest.approx(0.55)
    assert auto.worth.first.chance(0.35) == pytest.approx(0.35)
    assert auto.worth.first.chance(0.15) == pytest.approx(0.15)
    assert auto.worth.first.chance(0.95) > 0.95


@pytest.mark.parametrize("name", sorted(RECORDED, key=lambda name: "A4B" in name)[:2])
def test_it_is_near_the_best_fixed_width_where_drafts_are_poor(name: str) -> None:
    anchors, table = drafts(6000, 0.2, seed=1), RECORDED[name]
    best = min(play(Fixed(size), anchors, table).milliseconds for size in (1, 2, 3, 4, 6))
    assert best / play(Auto(table), anchors, table).milliseconds >= 0.97


def test_a_rest_ends_where_the_drafter_is_as_sure_as_before() -> None:
    """Confidence that was worth nothing for a while must not keep everybody from looking again."""
    sure = [RecordedDraft((0.99,) * 15, 15)] * 600
    for table in TABLES.values():
        anchors = [*sure, *wrong(600, 0.99), *sure]
        assert play(Auto(table), anchors[1200:], table).rounds <= 600 // 14
        with_rest, alone = play(Auto(table), anchors, table), play(Fixed(1), anchors, table)
        assert with_rest.rounds < 600 + 3 * 48 + 2 * 600 // 8
        assert with_rest.milliseconds < alone.milliseconds


def test_a_draft_as_dear_as_a_pass_has_to_show_that_it_pays() -> None:
    """As SmolLM2's on a CPU: one kept token doesn't pay for it, so that tries verify more; and once drafting has lost,
    answers begin with the target alone. Where it has won they begin with drafts."""
    dear = RoundCosts(12.2, (13.6, *(15.1 + 1.8 * row for row in range(15))), ingest=0.12)
    table, plain = CostTable((0,), (dear,)), 1e3 / dear.plain
    assert dear.tried(1) == 2 and DENSE.at(0).tried(1) == EXPERTS.at(0).tried(1) == 1
    policy = Auto(table)
    play(policy, wrong(60, 0.8), table)
    for count in (10, 32, 40, 100, 2000):
        policy.begin()
        assert play(policy, wrong(count, 0.8), table).tok_s >= 0.96 * plain
    for _ in range(4):
        policy.begin()
        later = play(policy, drafts(500, 0.9, seed=3), table).tok_s
    assert play(Auto(table), drafts(500, 0.9, seed=3), table).tok_s > 1.4 * plain
    assert later > 1.4 * plain
