"""The figures of a turn, on steps small enough to add up by hand."""

from __future__ import annotations

import pytest

from engine.events import DraftToken, EmittedToken, Step, TurnStatistics
from engine.statistics import TurnMeter


def step(index: int, time: float, num_drafted: int, num_accepted: int, num_emitted: int) -> Step:
    draft = tuple(DraftToken(9, "d", 0.5) for _ in range(num_drafted))
    emitted = tuple(EmittedToken(9, "e", "accepted") for _ in range(num_emitted))
    width = num_drafted + 1 if index else 0
    return Step(1, index, time, draft, num_accepted, emitted, width, 1.0, 2.0, 3.0, 50, 8, 0.0)


def test_a_turn() -> None:
    meter = TurnMeter(num_prompt_tokens=20, num_reused_tokens=5)
    for args in ((0, 0.5, 0, 0, 1), (1, 0.7, 7, 3, 4), (2, 0.9, 7, 0, 1), (3, 1.1, 7, 3, 4), (4, 1.5, 0, 0, 1)):
        meter.add(step(*args))
    assert meter.statistics() == TurnStatistics(
        num_prompt_tokens=20,
        num_reused_tokens=5,
        num_tokens=11,
        num_spec_steps=3,
        num_draft_tokens=21,
        num_accepted_draft_tokens=6,
        mean_acceptance_length=3.0,
        acceptance_histogram=(1, 0, 0, 2),
        ttft_ms=500.0,
        decode_ms=pytest.approx(1000.0),  # type: ignore[arg-type]
        tok_s=pytest.approx(10.0),  # type: ignore[arg-type]
    )


def test_nothing_yet() -> None:
    assert TurnMeter(3).statistics() == TurnStatistics(num_prompt_tokens=3)


def test_one_token_has_no_decode_speed() -> None:
    meter = TurnMeter()
    meter.add(step(0, 0.25, 0, 0, 1))
    statistics = meter.statistics()
    assert (statistics.ttft_ms, statistics.decode_ms, statistics.tok_s) == (250.0, 0.0, 0.0)
    assert statistics.mean_acceptance_length == 0 and statistics.acceptance_histogram == ()
