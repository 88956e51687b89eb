"""Bars, digits, themes and cells: what the screen draws, without a screen."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.color import Color

from dflash_tui.app.glyphs import EIGHTHS, axis, bars, large_number, resampled, scaled
from dflash_tui.app.theming import VERDICTS, ThemeError, bundled_themes_dir, load_themes, read_theme
from dflash_tui.app.widgets.round_strip import LONGEST_CELL, probability, visible
from dflash_tui.app.widgets.status import short_name
from dflash_tui.app.wrapping import width_of


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


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=300), st.integers(1, 40))
def test_resampling_keeps_the_range_and_the_order(values: list[float], count: int) -> None:
    result = resampled(values, count)
    assert len(result) == min(len(values), count)
    assert min(values) - 1e-6 <= min(result) and max(result) <= max(values) + 1e-6
    assert resampled(sorted(values), count) == sorted(resampled(sorted(values), count))


def test_axis_labels_stand_under_their_columns() -> None:
    assert axis({0: "0", 5: "5", 10: "10"}, 16, 2) == "0         5         10"


def test_large_numbers_have_rows_of_one_width() -> None:
    assert len({len(row) for row in large_number("1234567890.–")}) == 1


@given(st.text(max_size=30))
def test_a_token_always_fits_its_cell(text: str) -> None:
    shown = visible(text)
    assert 0 < width_of(shown) <= LONGEST_CELL
    assert "\n" not in shown and "\x1b" not in shown


@pytest.mark.parametrize(("value", "text"), [(0.0, ".00"), (0.074, ".07"), (0.99, ".99"), (0.999, "1"), (1.0, "1")])
def test_probabilities_are_short(value: float, text: str) -> None:
    assert probability(value) == text


@pytest.mark.parametrize("name", ["/models/gemma-4-26B/", "google/gemma-4-26B", "gemma-4-26B"])
def test_models_are_called_by_their_last_name(name: str) -> None:
    assert short_name(name) == "gemma-4-26B"


def contrast(first: str, second: str) -> float:
    """WCAG 2 contrast ratio."""

    def luminance(color: str) -> float:
        channels = [value / 255 for value in Color.parse(color).rgb]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", ["dflash-dark", "dflash-light"])
def test_every_verdict_can_be_read(name: str) -> None:
    theme = read_theme(bundled_themes_dir() / f"{name}.toml")
    assert theme.background is not None
    for verdict in VERDICTS:
        assert contrast(theme.variables[f"verdict-{verdict}"], theme.background) >= 4.5, verdict


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("name = ", "user.toml"),
        ("[colors]\nforeground = '#fff'", "primary"),
        ("[colors]\nprimary = 'bluish'", "no colour"),
        ("[colors]\nprimary = 5", "no colour"),
        ("[colors]\nprimary = '#fff'\n[verdict]\naccept = '#fff'", "accept"),
        ("colors = 3", "table"),
    ],
)
def test_a_broken_theme_says_what_is_wrong_and_where(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "user.toml"
    path.write_text(text)
    with pytest.raises(ThemeError, match=complaint) as failure:
        read_theme(path)
    assert "user.toml" in str(failure.value)


def test_a_users_theme_joins_the_bundled_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dflash_tui.app.theming.user_themes_dir", lambda: tmp_path)
    (tmp_path / "mine.toml").write_text("[colors]\nprimary = '#ff0000'")
    (tmp_path / "broken.toml").write_text("[colors]")
    themes, errors = load_themes()
    assert {"dflash-dark", "dflash-light", "mine"} <= {theme.name for theme in themes}
    assert len(errors) == 1 and "broken.toml" in str(errors[0])
