from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given

from dflash_tui.core.rounds.cells import round_cells, show_blanks
from engine.events import Step
from support.events_for_tests import make_step
from tests.core.rounds_for_tests import rounds


@given(rounds())
def test_every_draft_and_every_own_token_has_one_cell(steps: list[Step]) -> None:
    for step in steps:
        cells = round_cells(step)
        fates = Counter(cell.fate for cell in cells)
        assert fates["accepted"] == step.num_accepted
        drafted = ("accepted", "rejected", "discarded", "unverified", "ended")
        assert sum(fates[fate] for fate in drafted) == len(step.draft)
        assert [cell.text for cell in cells if cell.probability is not None] == [token.text for token in step.draft]
        assert fates["corrected"] == sum(token.verdict == "corrected" for token in step.emitted)


def test_the_correction_follows_the_guess_it_replaces() -> None:
    assert [cell.fate for cell in round_cells(make_step(2, 5))] == [
        "accepted",
        "accepted",
        "rejected",
        "corrected",
        "discarded",
        "discarded",
    ]


def test_the_end_mark_has_one_name_drafted_or_written() -> None:
    step = make_step(1, 2, ending="stop")
    last = replace(step.emitted[-1], text="<turn|>", channel="control", verdict="corrected")
    drafted = (step.draft[0], replace(step.draft[1], text="<turn|>"))
    cells = round_cells(replace(step, draft=drafted, emitted=(*step.emitted[:-1], last)))
    assert [show_blanks(cell.text) for cell in cells if cell.fate in ("rejected", "corrected")] == ["‹end›", "‹end›"]


@pytest.mark.parametrize("mark", ["<turn|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|return|>", "</s>"])
def test_every_family_s_end_mark_has_one_name(mark: str) -> None:
    assert show_blanks(mark) == "‹end›"


@pytest.mark.parametrize("text", ["<|turn>", "<|im_start|>", "<channel|>", "<tool_response|>", "end", "<b>", "</p>"])
def test_other_marks_are_shown_as_they_are(text: str) -> None:
    assert show_blanks(text) == text
