"""Bars, digits and cells: what the screen draws, without a screen."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from dflash_tui.app.glyphs import EIGHTHS, bars
from dflash_tui.app.widgets.rounds.round_strip import LONGEST_CELL, visible
from dflash_tui.app.widgets.rounds.step_table import Scene, scene_lines
from dflash_tui.core.rounds.inspection import inspect_step
from dflash_tui.core.text.wrapping import width_of
from support.events_for_tests import make_step


@given(st.lists(st.floats(0, 1), min_size=1, max_size=16), st.integers(1, 6))
def test_a_bar_is_as_high_as_its_value(values: list[float], height: int) -> None:
    rows = bars(values, height)
    assert len(rows) == height
    for column, value in enumerate(values):
        filled = sum(EIGHTHS.index(row[column]) for row in rows)
        assert abs(filled - value * height * 8) <= 1
        assert (filled > 0) == (value > 0)


@given(st.text(max_size=30))
def test_a_token_always_fits_its_cell(text: str) -> None:
    shown = visible(text)
    assert 0 < width_of(shown) <= LONGEST_CELL
    assert "\n" not in shown and "\x1b" not in shown


@given(st.integers(20, 130), st.lists(st.sampled_from(("‹end›", "a", "·return")), min_size=1, max_size=15))
def test_an_end_mark_is_never_cut(width: int, drafted: list[str]) -> None:
    step = make_step(0, len(drafted))
    draft = tuple(
        replace(token, text="<end_of_turn>" if text == "‹end›" else text)
        for token, text in zip(step.draft, drafted, strict=True)
    )
    scene = Scene(inspect_step(replace(step, draft=draft), 0, 0, None))
    guesses = next(line.plain for line in scene_lines(scene, width, 12) if line.plain.startswith("guess"))
    assert "‹end" not in guesses.replace("‹end›", "") and width_of(guesses) <= max(width, 24)
