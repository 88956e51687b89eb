"""The race screen: measures, replays, and gives the engine back."""

from __future__ import annotations

from engine.commands import Ask, Stop
from engine.events import EngineError
from tests.app.conftest import Launch
from tests.app.test_race_screen import STORY, open_race, text_of


async def test_one_run_each_is_shown_and_the_others_follow_behind_it(launch: Launch) -> None:
    async with launch(answer=STORY, holds=True) as driver:
        screen = await open_race(driver)
        lanes = len(screen.race.lanes)
        await driver.until(lambda: "━" in text_of(screen, "#lane-0"))
        assert len(driver.sent(Ask)) < 2 * lanes, "a lane moves while it runs, whatever is still to come"
        driver.engine.holds = False
        await driver.until(lambda: screen.race.result is not None)
        asked = driver.sent(Ask)
        assert len(asked) == 2 * lanes and max(ask.settings.max_new_tokens for ask in asked) <= 200
        await driver.pilot.press("end")
        shown = screen.race.result
        assert shown is not None and [len(lane.runs) for lane in shown.lanes] == [1] * lanes
        await driver.until(lambda: screen.race.complete)
        assert screen.race.result is not None
        assert [len(lane.runs) for lane in screen.race.result.lanes] == [3] * lanes
        await driver.until(lambda: "medians of 3 runs" in text_of(screen, "#race-title"))


async def test_the_conversation_knows_nothing_of_the_race(launch: Launch) -> None:
    async with launch(answer=STORY) as driver:
        await driver.ask_and_wait("Tell me a story")
        before = (driver.log.text, list(driver.screen.chat.messages), len(driver.screen.chat.reducer.turns))
        screen = await open_race(driver, "/race")
        await driver.until(lambda: screen.race.result is not None)
        await driver.pilot.press("r", "escape")  # another, and away from it: the first is what is known
        await driver.until(lambda: driver.app.screen is driver.screen)
        assert driver.screen.queue.diverted is None
        after = (driver.log.text, list(driver.screen.chat.messages), len(driver.screen.chat.reducer.turns))
        assert after == before
        await driver.ask_and_wait("And another")
        assert len(driver.screen.chat.reducer.turns) == 2


async def test_escape_stops_the_engine_and_waits_for_it(launch: Launch) -> None:
    async with launch(holds=True) as driver:
        screen = await open_race(driver)
        await driver.until(lambda: len(driver.sent(Ask)) >= 1 and screen.race.result is None)
        await driver.pilot.press("escape")
        await driver.until(lambda: driver.app.screen is driver.screen)
        assert screen.race.stopped and screen.race.idle and driver.sent(Stop)
        assert driver.screen.queue.diverted is None
        asked = len(driver.sent(Ask))
        await driver.ask("hello")
        await driver.until(lambda: driver.screen.chat.reducer.busy)
        assert len(driver.sent(Ask)) == asked + 1


async def test_an_error_brings_the_chat_back(launch: Launch) -> None:
    error = EngineError("generation", "The engine failed.", "Ask again.")
    async with launch(turn_error=error, notices=True) as driver:
        await driver.ask("/race Tell me a story")
        await driver.until(lambda: "The engine failed." in driver.notices())
        await driver.until(lambda: driver.app.screen is driver.screen)
        assert driver.screen.queue.diverted is None
