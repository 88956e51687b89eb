from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given

from dflash_tui.core.figures.statistics import AcceptanceStatistics
from dflash_tui.core.rounds.history import history_of
from engine.events import Step
from engine.rounds.statistics import TurnMeter
from support.events_for_tests import make_step
from tests.core.rounds_for_tests import rounds


def count(steps: list[Step]) -> AcceptanceStatistics:
    return history_of(steps).acceptance(-1)


@given(rounds())
def test_counts_agree_with_each_other_and_with_the_rounds(steps: list[Step]) -> None:
    statistics = count(steps)
    drafted = [step for step in steps if step.draft]
    assert statistics.num_spec_steps == len(drafted) == sum(statistics.histogram)
    assert statistics.num_accepted_draft_tokens == sum(k * n for k, n in enumerate(statistics.histogram))
    assert statistics.num_draft_tokens == sum(len(step.draft) for step in drafted)
    if drafted:
        emitted = sum(step.num_accepted + 1 for step in drafted)
        assert statistics.mean_acceptance_length == pytest.approx(emitted / len(drafted))


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


def test_only_verified_drafts_count() -> None:
    step = make_step(3, 15)
    narrow = Step(*(getattr(step, name) if name != "verify_width" else 5 for name in Step.__dataclass_fields__))
    assert count([narrow]).num_draft_tokens == 4


def test_a_draft_of_which_nothing_is_verified_counts_as_the_engine_counts_it() -> None:
    """The status line and the line behind the answer must say the same."""
    whole = make_step(3, 15)
    unverified = replace(make_step(0, 15, ending="stop"), verify_width=1)
    meter, shown = TurnMeter(), count([whole, unverified])
    for step in (whole, unverified):
        meter.add(step)
    told = meter.statistics()
    assert shown.mean_acceptance_length == told.mean_acceptance_length == 2.5
    assert (shown.num_spec_steps, shown.num_draft_tokens) == (told.num_spec_steps, told.num_draft_tokens)
    assert shown.positions[0].reached == 1, "what was not verified says nothing about the drafter"
