"""The step view says why so much of a draft was verified, and how much it was in the rounds before."""

from __future__ import annotations

from dataclasses import replace

from dflash_tui.app.widgets.step_table import Scene, scene_lines
from dflash_tui.core.rounds.history import StepHistory
from dflash_tui.core.rounds.inspection import inspect
from engine.events import WidthChoice
from tests.core.events_for_tests import make_step

CHOICE = WidthChoice(0.31, 0.4, 700.0)


def lines(width: int, height: int = 14, choice: WidthChoice | None = CHOICE) -> list[str]:
    history = StepHistory()
    history.append(make_step(0, 0, index=0))
    for index in range(1, 20):
        history.append(replace(make_step(3, 15, index=index), verify_width=1 + index % 8, choice=choice))
    scene = Scene(inspect(history, 14, 5, 0, None), title="round 14")
    return [line.plain for line in scene_lines(scene, width, height)]


def test_one_line_says_why_and_shows_the_rounds_before() -> None:
    (line,) = (line for line in lines(118) if "verified 6 of 15" in line and "likely" in line)
    said, _, rounds = line.partition("  last rounds ")
    assert said == "verified 6 of 15: the 7th is 31 % likely and costs 0.40 ms"
    assert len(rounds) == 14 and rounds[-7] == " " < rounds[-6] < rounds[-1]  # 8, 9 … 14 verified 0, 1 … 6


def test_it_gives_way_on_narrow_screens_and_is_silent_where_nothing_was_chosen() -> None:
    assert "verified 6 of 15: the 7th is 31 % likely and costs 0.40 ms" in lines(60)
    assert all(len(line) <= 118 for line in lines(118)) and len(lines(118, height=6)) == 6
    assert not any("likely and costs" in line for line in lines(118, choice=None))
