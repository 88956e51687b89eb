"""Bars, digits and cells: what the screen draws, without a screen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_tui.app.glyphs import EIGHTHS, axis, bars, large_number, scaled
from dflash_tui.app.widgets.round_strip import LONGEST_CELL, probability, visible
from dflash_tui.app.widgets.status import short_name
from dflash_tui.core.text.wrapping import width_of


@given(st.lists(st.floats(0, 1), min_size=1, max_size=16), st.integers(1, 6))
def test_a_bar_is_as_high_as_its_value(values: list[float], height: int) -> None:
    rows = bars(values, height)
    assert len(rows) == height
    for column, value in enumerate(values):
        filled = sum(EIGHTHS.index(row[column]) for row in rows)
        assert abs(filled - value * height * 8) <= 1
        assert (filled > 0) == (value > 0)


def test_scaling() -> None:
    assert scaled([1, 4, 2]) == [0.25, 1.0, 0.5]
    assert scaled([0, 0]) == [0.0, 0.0]


def test_axis_labels_stand_under_their_columns() -> None:
    assert axis({0: "0", 5: "5", 10: "10"}, 16, 2) == "0         5         10"


def test_large_numbers_have_rows_of_one_width() -> None:
    assert len({len(row) for row in large_number("1234567890.–")}) == 1


@given(st.text(max_size=30))
def test_a_token_always_fits_its_cell(text: str) -> None:
    shown = visible(text)
    assert 0 < width_of(shown) <= LONGEST_CELL
    assert "\n" not in shown and "\x1b" not in shown


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "<.01"), (0.015, ".02"), (0.074, ".07"), (0.99, ".99"), (0.999, "1"), (1.0, "1")]
)
def test_probabilities_are_short(value: float, text: str) -> None:
    assert probability(value) == text


@pytest.mark.parametrize("name", ["/models/gemma-4-26B/", "google/gemma-4-26B", "gemma-4-26B"])
def test_models_are_called_by_their_last_name(name: str) -> None:
    assert short_name(name) == "gemma-4-26B"
