"""Bars, digits and cells: what the screen draws, without a screen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dflash_tui.app.glyphs import EIGHTHS, bars
from dflash_tui.app.widgets.rounds.round_strip import LONGEST_CELL, visible
from dflash_tui.core.text.wrapping import width_of


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
