"""The figures of the sparkline: their past without a copy, their means without another sum."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_tui.core.figures.series import Series

values_ = st.lists(st.floats(0, 1000), min_size=1, max_size=300)


def series_of(values: list[float]) -> Series:
    series = Series()
    for value in values:
        series.append(value)
    return series


@given(values_, st.data())
def test_the_past_stays_what_it_was(values: list[float], data: st.DataObject) -> None:
    count = data.draw(st.integers(0, len(values)))
    series = series_of(values[:count])
    past = series.first(count)
    for value in values[count:]:
        series.append(value)
    assert list(past) == values[:count] and len(series) == len(values)
    assert past == series.first(count) == series_of(values[:count]).first(count)
    assert (past == series.first(len(values))) == (count == len(values))
    assert past[-3:] == values[:count][-3:]


@given(values_, st.integers(1, 40))
def test_resampled_values_are_means_of_neighbours(values: list[float], count: int) -> None:
    result = series_of(values).first(len(values)).resampled(count)
    assert len(result) == min(len(values), count)
    edges = [len(values) * place // len(result) for place in range(len(result) + 1)]
    groups = [values[start:end] for start, end in pairwise(edges)]
    assert result == pytest.approx([float(sum(map(Fraction, group)) / len(group)) for group in groups], abs=1e-9)
