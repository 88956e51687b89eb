from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given

from dflash_tui.core.figures.statistics import AcceptanceStatistics
from engine.events import Step
from engine.rounds.statistics import TurnMeter
from engine.rounds.store import RoundStore
from support.events_for_tests import make_step
from tests.core.replay.steps import turns
from tests.core.rounds_for_tests import rounds


def count(steps: list[Step]) -> AcceptanceStatistics:
    return RoundStore(steps).acceptance(-1)


@given(turns())
def test_the_status_line_counts_what_the_line_behind_the_answer_counts(steps: list[Step]) -> None:
    meter, shown = TurnMeter(), count(steps)
    for step in steps:
        meter.add(step)
    told = meter.statistics()
    assert shown.num_spec_steps == told.num_spec_steps == sum(bool(step.draft) for step in steps)
    assert shown.num_draft_tokens == told.num_draft_tokens
    assert shown.num_accepted_draft_tokens == told.num_accepted_draft_tokens
    assert shown.mean_acceptance_length == pytest.approx(told.mean_acceptance_length)
    stored = RoundStore(steps).count().statistics()
    assert stored.tokens_per_round == told.tokens_per_round
    behind, passes = told.num_tokens - 1, len(steps) - 1
    assert told.tokens_per_round == (behind / passes if behind > 0 and passes else 0), "however the last round ends"
    assert shown.histogram[: len(told.acceptance_histogram)] == told.acceptance_histogram
    assert dict(shown.named) == {each.source: n for each in told.by_source if (n := each.num_accepted_draft_tokens)}


@given(rounds())
def test_a_position_is_reached_only_through_the_one_before(steps: list[Step]) -> None:
    positions = count(steps).positions
    for before, after in pairwise(positions):
        assert after.reached <= before.accepted
        assert after.accepted <= after.reached


def test_rounds_without_evidence_are_censored() -> None:
    # Two accepted each time: once all of the draft was, once the next was wrong, once the answer ended there.
    steps = [make_step(2, 2), make_step(2, 5), make_step(2, 5, ending="stop")]
    positions = count(steps).positions
    assert [(p.reached, p.accepted) for p in positions[:4]] == [(3, 3), (3, 3), (1, 0), (0, 0)]
    assert positions[2].rate == 0.0
    assert positions[3].rate is None


def test_a_draft_of_which_nothing_is_verified_says_nothing_of_the_drafter() -> None:
    shown = count([make_step(3, 15), replace(make_step(0, 15, ending="stop"), verify_width=1)])
    assert shown.mean_acceptance_length == 2.5 and shown.num_draft_tokens == 15
    assert shown.positions[0].reached == 1
