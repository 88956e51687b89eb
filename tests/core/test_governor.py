from __future__ import annotations

import gc

import pytest

from dflash_tui.core.garbage import freeze_garbage_collector
from dflash_tui.core.governor import FASTEST, SLOWEST, FrameGovernor


def settle(governor: FrameGovernor, cost: float, frames: int = 200) -> None:
    for _ in range(frames):
        governor.observe(cost)


@pytest.mark.parametrize("cost", [0.003, 0.005, 0.008])
def test_the_screen_settles_at_its_share(cost: float) -> None:
    governor = FrameGovernor(0.07)
    settle(governor, cost)
    assert cost / governor.interval == pytest.approx(0.07, rel=0.05)


def test_frames_are_neither_wasted_nor_starved() -> None:
    cheap, dear = FrameGovernor(0.07), FrameGovernor(0.07)
    settle(cheap, 0.0001)
    settle(dear, 0.05)
    assert cheap.interval == FASTEST
    assert dear.interval == SLOWEST


def test_what_loading_made_is_set_aside_without_a_search_through_all_of_it() -> None:
    searches = gc.get_stats()[2]["collections"]
    freeze_garbage_collector()
    assert gc.get_freeze_count() > 0 and gc.get_stats()[2]["collections"] == searches
