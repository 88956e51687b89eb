"""The race screen: measures, replays, and gives the engine back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from textual.widgets import Static

from dflash_tui.app.glyphs import large_number
from dflash_tui.app.screens.keys import KeysScreen
from dflash_tui.app.screens.race import RaceScreen
from dflash_tui.app.widgets.race_drawing import winner
from dflash_tui.app.widgets.token_log import TokenLog
from dflash_tui.core.race.lanes import ALONE

from .conftest import Driver, Launch

STORY = "Once upon a time there was a drafter that guessed."


def race_of(driver: Driver) -> RaceScreen:
    assert isinstance(driver.app.screen, RaceScreen)
    return driver.app.screen


def text_of(screen: RaceScreen, name: str) -> str:
    return str(screen.query_one(name, Static).render())


def logs_of(screen: RaceScreen) -> Iterator[str]:
    return (log.text for log in screen.query(TokenLog))


def large_in(screen: RaceScreen) -> str:
    """What the large digits say, or the words in their place."""
    drawn = tuple(text_of(screen, "#race-factor").split("\n"))
    numbers = (f"{tenth / 10:.1f}×" for tenth in range(1000))
    return next((text for text in numbers if large_number(text) == drawn), drawn[0])


class StandingClock:
    """The viewer's clock, which goes on when it is told to: a busy machine sees no more of a race than an idle one."""

    seconds, looks = 0.0, 0

    def __call__(self) -> float:
        self.looks += 1
        return self.seconds


async def open_race(driver: Driver, command: str = "/race Tell me a story") -> RaceScreen:
    await driver.ask(command)
    await driver.until(lambda: isinstance(driver.app.screen, RaceScreen))
    return race_of(driver)


@pytest.mark.parametrize("size", [(120, 36), (60, 18)])
async def test_a_race_is_measured_and_replayed(
    launch: Launch, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = StandingClock()
    monkeypatch.setattr("dflash_tui.app.screens.race.monotonic", clock)
    async with launch(size=size, answer=STORY) as driver:
        screen = await open_race(driver)
        await driver.until(lambda: screen.race.result is not None)
        assert not screen.replayed and "×" not in text_of(screen, "#race-title") + text_of(screen, "#race-table")
        await driver.pilot.press("space")
        if size == (120, 36):
            await driver.pilot.press("f1")
            assert isinstance(driver.app.screen, KeysScreen)
            told = str(driver.app.screen.query_one(Static).render())
            assert "save as a page" in told and "target alone" in told
            await driver.pilot.press("f1")
            assert driver.app.screen is screen
        head = text_of(screen, "#lane-0")
        assert "paused" in text_of(screen, "#race-title")
        clock.seconds, looks = 1000.0, clock.looks
        await driver.until(lambda: clock.looks > looks)
        assert text_of(screen, "#lane-0") == head
        await driver.pilot.press("end")
        assert screen.replayed
        await driver.until(lambda: all(text.rstrip().endswith("guessed.") for text in logs_of(screen)))
        result = screen.race.result
        assert result is not None and [lane.lane.name for lane in result.lanes] == [
            ALONE, "DFlash, auto", "DFlash, block 16", "Lookup, auto",
        ]  # fmt: skip
        table = text_of(screen, "#race-table")
        assert all(f"{lane.tok_s:.0f}" in table and lane.lane.name in table for lane in result.lanes)
        assert f"{result.speed_up(result.lanes[1]).times:.2f}×" in table
        told = "no difference" if result.winner is None else f"{result.speed_up(winner(result)[0]).times:.1f}×"
        assert told == large_in(screen)
        remarks = screen.query_one("#race-remarks", Static)
        remarks.update("long\n" * 9)
        await driver.until(lambda: remarks.size.height > 8)
        assert screen.query_one("#race-table").region.bottom < size[1], "long remarks leave lanes and table in sight"
        if size == (120, 36):
            await driver.pilot.press("e")
            page = (driver.out_dir / "race.html").read_text(encoding="utf-8")
            assert "DFlash, block 16" in page and page.count("<article") == 4
        await driver.pilot.press("space")
        await driver.until(lambda: all(log.size.height >= 1 for log in screen.query(TokenLog)))
