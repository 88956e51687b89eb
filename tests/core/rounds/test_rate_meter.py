from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_tui.core.rounds.rate_meter import RateMeter
from engine.rounds.numbers import SECOND
from engine.rounds.store import RoundStore
from support.events_for_tests import make_step

WAITS, TOKENS = st.integers(1, 700_000), st.integers(1, 16)
PACES = st.lists(st.tuples(WAITS, TOKENS), min_size=1, max_size=60)
"""Rounds: microseconds since the one before, and tokens."""


def history_of(rounds: list[tuple[float, int]]) -> RoundStore:
    """Of rounds that end at a time, in seconds, and emit so many tokens."""
    history = RoundStore()
    for index, (time, tokens) in enumerate(rounds):
        history.append(make_step(tokens - 1, tokens - 1, index=index, time=round(time, 6)))
    return history


@given(PACES)
def test_it_shows_after_any_round_what_counting_up_to_it_gives(paces: list[tuple[int, int]]) -> None:
    times = list(accumulate(wait for wait, _ in paces))
    tokens = [count for _, count in paces]
    history = history_of([(time / SECOND, count) for time, count in zip(times, tokens, strict=True)])
    meter = RateMeter(history)
    samples: list[float] = []
    peak = 0.0
    for index, time in enumerate(times):
        passed = time - times[0]
        recent = sum(
            count for end, count in list(zip(times, tokens, strict=True))[1 : index + 1] if time - end < SECOND
        )
        now = recent * SECOND / min(passed, SECOND) if passed else 0.0
        new = passed // RateMeter.SAMPLE - len(samples)
        samples += [now] * new
        if new and passed >= SECOND:
            peak = max(peak, now)
        rate = meter.after(index)
        assert rate.now == pytest.approx(now) and list(rate.history) == pytest.approx(samples)
        mean = sum(tokens[1 : index + 1]) * SECOND / passed if passed else 0.0
        assert rate.mean == pytest.approx(mean) and rate.peak == pytest.approx(max(peak, mean, now))
        assert rate.peak >= rate.now


@given(st.lists(st.tuples(WAITS, TOKENS), min_size=1, max_size=30), st.integers(0, 30))
def test_following_round_by_round_measures_what_measuring_the_whole_does(
    rounds: list[tuple[int, int]], backwards: int
) -> None:
    """Also where a clock went back, as damaged traces have it."""
    times = [time / SECOND for time in accumulate(wait for wait, _ in rounds)]
    times[backwards:] = times[backwards:][::-1]
    whole = history_of(list(zip(times, [tokens for _, tokens in rounds], strict=True)))
    growing = RoundStore()
    meter = RateMeter(growing)
    for step in whole:
        growing.append(step)
        meter.follow()
    at_once = RateMeter(whole)
    assert [meter.after(index) for index in range(len(whole))] == [at_once.after(index) for index in range(len(whole))]
