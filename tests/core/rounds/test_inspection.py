"""What a round says of itself: one outcome and one true sentence per position."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_tui.core.rounds.inspection import Inspection, inspect, inspect_step
from engine.commands import Method
from engine.events import DraftToken, EmittedToken, Match, Step, WidthChoice
from engine.rounds.store import RoundStore
from engine.sampling.philox import uniform
from support.events_for_tests import make_step
from tests.pace import examples

from ..rounds_for_tests import rounds

FEW = settings(max_examples=examples(30), deadline=None)


SEED = 7


def inspections(steps: list[Step], first_position: int = 40) -> list[Inspection]:
    history = RoundStore(steps)
    return [inspect(history, index, first_position, SEED, None) for index in range(len(steps))]


@given(rounds())
@FEW
def test_every_position_has_the_outcome_that_its_token_tells(steps: list[Step]) -> None:
    for step, seen in zip(steps, inspections(steps), strict=True):
        outcomes = [column.outcome for column in seen.columns]
        expected = ["rejected" if token.verdict == "corrected" else token.verdict for token in step.emitted]
        assert outcomes[: len(step.emitted)] == expected
        behind = set(outcomes[len(step.emitted) :])
        fallen = "discarded" if "corrected" in {token.verdict for token in step.emitted} else "ended"
        assert behind <= {fallen}
        assert len(seen.columns) == max(len(step.draft), len(step.emitted))
        assert all(seen.why(place) for place in range(len(seen.columns)))


@given(rounds(), st.integers(0, 5000))
@FEW
def test_every_token_is_found_in_the_round_that_emitted_it(steps: list[Step], first_position: int) -> None:
    token = 0
    for step, seen in zip(steps, inspections(steps, first_position), strict=True):
        for place, emitted in enumerate(step.emitted):
            assert seen.column_of(token) == place
            choice = seen.columns[place].choice
            assert choice is not None and choice.id == emitted.id
            token += 1
        assert seen.column_of(token) is None
        assert seen.column_of(seen.first_token - 1) is None


@given(rounds(), st.integers(0, 5000))
@FEW
def test_the_random_number_is_that_of_the_tokens_own_position(steps: list[Step], first_position: int) -> None:
    warm = [replace(step, temperature=0.7) for step in steps]
    numbers = [column.noise for seen in inspections(warm, first_position) for column in seen.columns if column.choice]
    assert numbers == [uniform(SEED, first_position + place) for place in range(len(numbers))]
    assert all(column.noise is None for seen in inspections(steps) for column in seen.columns)


def step_at(temperature: float, verify_width: int = 5) -> Step:
    """“a b moon x” drafted; “a b” kept, “sun” written instead of “moon”."""
    draft = (
        DraftToken(1, " a", 0.9, 0.8),
        DraftToken(2, " b", 0.7, 0.6),
        DraftToken(3, " moon", 0.4, 0.08),
        DraftToken(4, " x", 0.2),
    )
    emitted = (
        EmittedToken(1, " a", "accepted", probability=0.8),
        EmittedToken(2, " b", "accepted", probability=0.6),
        EmittedToken(5, " sun", "corrected", probability=0.625),
    )
    return Step(1, 3, 1.0, draft, 2, emitted, verify_width, 3.1, 6.4, 10.0, 60, 5, temperature)


def test_a_rejection_is_explained_by_the_two_probabilities() -> None:
    seen = inspect_step(step_at(0), 10, 60, SEED)
    said = "The target's most likely token is “·sun” (62.5%), not “·moon” (8%): "
    assert seen.why(2) == f"{said}the guess falls, the target's token stands."
    assert seen.why(0).startswith("The target's most likely token is “·a” (80%): that is what the drafter had guessed")
    assert seen.why(3).startswith("Never judged")
    assert seen.summary == "kept 2 of 4 guesses, then corrected"


def test_above_temperature_0_the_random_number_decides() -> None:
    seen = inspect_step(step_at(0.7), 10, 60, SEED)
    assert seen.columns[2].noise == uniform(SEED, 62)
    assert f"u = {uniform(SEED, 62):.3f} falls on “·sun”" in seen.why(2)


def test_drafts_behind_the_verified_ones_were_never_looked_at() -> None:
    step = step_at(0, verify_width=4)
    narrow = replace(step, emitted=(*step.emitted[:2], EmittedToken(3, " moon", "accepted"), step.emitted[2]))
    bonus = replace(narrow.emitted[3], verdict="bonus")
    seen = inspect_step(replace(narrow, num_accepted=3, emitted=(*narrow.emitted[:3], bonus)), 0, 0, SEED)
    assert [column.outcome for column in seen.columns] == ["accepted", "accepted", "accepted", "bonus"]
    assert "kept 3 of 3 checked (4 guessed)" in seen.summary
    corrected = inspect_step(replace(step, verify_width=4), 0, 0, SEED)
    assert corrected.columns[3].outcome == "unverified"
    assert "only 3 guesses in this round" in corrected.why(3)
    chosen = inspect_step(replace(step, verify_width=4, choice=WidthChoice(0.12, 0.4, 700.0)), 0, 0, SEED)
    assert chosen.width[0] == f"checked 3 of {len(step.draft)}: the 4th is kept in 12% of such rounds and costs 0.40 ms"
    free = inspect_step(replace(step, choice=WidthChoice(0.0004, 0.0, 700.0)), 0, 0, SEED)
    assert free.width[0].endswith("is kept in under 0.1% of such rounds and costs under 0.01 ms")
    tried = inspect_step(replace(step, verify_width=4, choice=WidthChoice(0.436, 0.0, 700.0)), 0, 0, SEED)
    assert "whether guesses are worth" in tried.width[0] and "43" not in tried.why(3)
    whole = inspect_step(replace(step, choice=WidthChoice(1.0, 0.0, 0.0)), 0, 0, SEED)
    assert whole.width[0] == f"checked all {step.num_verified}, to learn how often each place is right"
    assert inspect_step(step, 0, 0, SEED).width == ()
    resting = replace(make_step(0, 0, index=4), choice=WidthChoice(0.0, 1.42, 350.0))
    assert (
        inspect_step(resting, 0, 0, SEED).width[0]
        == "nothing guessed: lately guesses were not worth the 1.42 ms that they add"
    )
    assert "chance of 12% and would have cost 0.40 ms, in which this text gets 0.28 tokens on" in chosen.why(3)


@pytest.mark.parametrize(
    ("step", "word"),
    [
        (make_step(0, 0, index=0), "reading the prompt"),
        (make_step(0, 0, index=4), "Nothing was guessed"),
        (make_step(3, 3), "so the target adds one"),
    ],
)
def test_tokens_that_no_draft_gave(step: Step, word: str) -> None:
    inspection = inspect_step(step, 0, 0, SEED)
    assert word in inspection.why(len(step.emitted) - 1)
    assert ("one at a time" in inspection.cost[0]) is bool(step.draft), "what was one token alone is compared with none"


def test_what_was_looked_up_says_where_it_stood() -> None:
    step = make_step(1, 3)
    draft = tuple(replace(token, source="lookup") for token in step.draft)
    found = inspect_step(replace(step, draft=draft, match=Match(5, 1840)), 7, 107, None)
    assert found.match_words == "found 1 840 tokens back: the newest 5 tokens stood there, then “x0x1x2”"
    assert "came next where the text stood before" in found.why(0)
    assert inspect_step(step, 7, 107, None).match_words == ""


@given(rounds())
@FEW
def test_the_summary_counts_what_was_verified(steps: list[Step]) -> None:
    for step, seen in zip(steps, inspections(steps), strict=True):
        if step.draft:
            assert f"kept {step.num_accepted}" in seen.summary and f"{len(step.draft)} guess" in seen.summary
            assert step.num_verified == len(step.draft)


@pytest.mark.parametrize(
    ("method", "knowing"),
    [
        (None, ""),
        ("dflash", ""),
        ("dflash2", ", chosen as what best follows its own “a0”"),
        ("dspark", ", corrected by its own “a0”"),
        ("dspine", ", scored as what the drafter would say behind its own “a0”"),
        ("eagle3", ", drafted behind its own “a0”"),
    ],
)
def test_a_guess_says_which_guess_it_stood_behind(method: Method | None, knowing: str) -> None:
    seen = inspect(RoundStore([make_step(2, 3, text="a")]), 0, 40, SEED, None, method=method)
    assert "had guessed, so it is kept" in seen.why(0), "the first guess stands behind the text alone"
    assert f"had guessed{knowing}, so it is kept" in seen.why(1)
