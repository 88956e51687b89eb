"""Rounds that verified a tree: whoever reads a round says of it what is true of trees, too."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_tui.app.widgets.rounds.step_table import Scene, scene_lines
from dflash_tui.core.export.document import ExportedPage
from dflash_tui.core.export.json_export import to_json
from dflash_tui.core.rounds.cells import round_cells
from dflash_tui.core.rounds.inspection import Inspection, inspect_step
from dflash_tui.core.rounds.lenses import LensReading, bin_of
from dflash_tui.core.rounds.playback import Phase
from dflash_tui.core.rounds.trees import accepted_drafts, further_choices, num_positions
from engine.events import EmittedToken, Step, TurnFinished, TurnStarted, WidthChoice, event_from_dict
from engine.rounds.store import RoundStore
from support.events_for_tests import CHANCES, CHOICES, make_step, make_tree_step
from tests.core.answers_for_tests import turns_of
from tests.pace import examples

SECOND = make_tree_step((0, 1, 0, 0))
"""Keeps three of a tree of fifteen, the middle one a second choice; behind them nothing was verified."""
NONE = make_tree_step((3,))
"""Keeps nothing."""
paths = st.lists(st.sampled_from([0, 0, 0, 1, 2, 3, 9]), max_size=8)
"""What the target says: often the first choice, now and then none of the four."""
trees = st.builds(lambda said, rows: make_tree_step(said, rows=rows), paths, st.integers(2, 16))


def seen(step: Step) -> Inspection:
    return inspect_step(step, 10, 60, 7)


def lines(step: Step, phase: Phase = "emit", width: int = 118, height: int = 14) -> list[str]:
    scene = Scene(seen(step), phase, title="round 1", phases=phase != "emit")
    return [line.plain for line in scene_lines(scene, width, height)]


def cells(step: Step, label: str, phase: Phase = "emit") -> list[str]:
    return next((line[10:].split() for line in lines(step, phase) if line.startswith(label)), [])


def answer_of(*steps: Step) -> ExportedPage:
    return ExportedPage(
        "Why?", tuple(turns_of([TurnStarted(1, 5, 0, {}, "Why?"), *steps, TurnFinished(1, "stop", "")]))
    )


@given(trees)
def test_what_was_accepted_is_what_was_emitted(step: Step) -> None:
    kept = accepted_drafts(step)
    assert [token.id for token in kept] == [token.id for token in step.emitted[: step.num_accepted]]
    assert [cell.text for cell in round_cells(step) if cell.fate == "accepted"] == [token.text for token in kept]
    assert step.num_accepted <= num_positions(step) <= len(step.tree) == step.num_verified


@given(trees)
def test_every_further_choice_stands_once_with_its_fate(step: Step) -> None:
    further = further_choices(step)
    for depth, here in enumerate(further, 1):
        verified = {token.choice for token in step.tree if token.depth == depth}
        assert [0, *(each.token.choice for each in here)] == sorted(verified)
        fates = [each.fate for each in here]
        kept = depth <= step.num_accepted and step.emitted[depth - 1].id
        assert [each.token.id for each in here if each.fate == "accepted"] == [kept] * (kept in _ids(depth)[1:])
        if depth > step.num_accepted + step.is_corrected:
            assert set(fates) <= {"discarded"}
    if step.is_corrected and len(further) > step.num_accepted:
        assert {each.fate for each in further[step.num_accepted]} <= {"rejected", "discarded"}


def _ids(depth: int) -> list[int]:
    return [token for token, _, _ in CHOICES[depth - 1]]


def test_choices_behind_what_was_kept_are_refused_and_others_were_never_judged() -> None:
    fates = [[each.fate for each in here] for here in further_choices(SECOND)]
    assert fates == [["rejected", "rejected"], ["accepted", "rejected"], ["discarded"], [], []]


def test_a_column_says_which_choice_was_kept_and_what_became_of_the_first() -> None:
    said = seen(SECOND).why(1)
    assert said.startswith("The target's most likely token is “·w2b” (30%): that is the drafter's second choice (25% l")
    assert said.endswith("so it is kept; the first, “·w2a” (55%), was not what the target said.")
    assert seen(SECOND).why(0).endswith("that is what the drafter had guessed, so it is kept.")
    assert seen(SECOND).why(3).startswith("Behind what was kept nothing was checked, so the target adds one")
    assert seen(SECOND).why(4).startswith("Never judged")
    assert seen(SECOND).why(7) == "Never looked at: the tree of the 15 likeliest guesses ends before it."
    small = replace(make_tree_step((0,), rows=5), choice=WidthChoice(0.04, 0.5, 700.0))
    assert (
        seen(small).why(7).startswith("Never looked at: the tree of the 4 likeliest guesses ends before it, for the n")
    )
    assert "not “·w1a” (20%) nor the drafter's 2 further choices: the guesses fall" in seen(NONE).why(0)
    assert "nor the drafter's second choice: the guesses fall" in seen(make_tree_step((9,), rows=4)).why(0)
    assert seen(SECOND).choices(1) == "The drafter's choices here: “·w2a” 55%, “·w2b” 25%, “·w2c” 12%."
    assert seen(SECOND).choices(4) == seen(make_step(1, 3)).choices(0) == ""


@given(trees)
def test_every_position_of_a_tree_has_a_sentence(step: Step) -> None:
    inspection = seen(step)
    assert all(inspection.why(place) for place in range(len(inspection.columns)))
    outcomes = [column.outcome for column in inspection.columns]
    assert outcomes[: step.num_accepted] == ["accepted"] * step.num_accepted
    assert set(outcomes[num_positions(step) :]) <= {"unverified", "bonus"} and "ended" not in outcomes


def test_phases_show_the_block_then_all_choices_then_verdicts() -> None:
    assert cells(SECOND, "or 2nd", "block") == []
    assert cells(SECOND, "or 2nd", "draft") == cells(SECOND, "or 2nd", "verify") == ["·w1b", "·w2b", "·w3b"]
    assert cells(SECOND, "or 2nd", "judge") == ["·w1b", "✓·w2b", "·w3b"]
    assert any("a tree of 15" in line for line in lines(SECOND, "draft"))
    assert any("as long as one of them is" in line for line in lines(SECOND, "judge"))


@given(trees)
@settings(max_examples=examples(30))
def test_confidence_is_that_of_the_choice_which_was_kept(step: Step) -> None:
    history = RoundStore([step])
    reading = LensReading("confidence", history)
    expected = [f"sure-{bin_of(token.probability) + 1}" for token in accepted_drafts(step)] + ["undrafted"]
    assert [reading.shade(token) for token in range(history.num_tokens)] == expected
    if step.num_accepted:
        assert accepted_drafts(step)[0].probability == CHANCES[_ids(1).index(step.emitted[0].id)]


@given(st.lists(trees, min_size=1, max_size=8))
def test_counts_are_of_verified_tokens_and_of_kept_positions(steps: list[Step]) -> None:
    counted = RoundStore(steps).acceptance(-1)
    assert counted.num_draft_tokens == sum(len(step.tree) for step in steps)
    assert sum(counted.corrected) == sum(step.emitted[-1].verdict == "corrected" for step in steps)


@given(trees)
def test_json_gives_trees_back(step: Step) -> None:
    content = json.loads(to_json(answer_of(step)))
    (copy,) = content["sections"][0]["steps"]
    assert event_from_dict({"event": "Step", **copy}) == step


@pytest.mark.parametrize("said", [(0, 1), (9,)])
def test_the_own_token_stands_behind_what_was_kept(said: tuple[int, ...]) -> None:
    step = make_tree_step(said, own=EmittedToken(5, " sun", "corrected"))
    fates = [cell.fate for cell in round_cells(step)]
    kept = len(said) if said != (9,) else 0
    looked_at, unverified = num_positions(step), len(step.draft) - num_positions(step)
    fallen = ["discarded"] * (looked_at - kept - 1) + ["unverified"] * unverified
    assert fates == ["accepted"] * kept + ["rejected", "corrected"] + fallen
