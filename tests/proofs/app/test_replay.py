"""The replay screen, driven by Textual's pilot."""

from __future__ import annotations

import asyncio

import pytest

from dflash_tui.app.chat.screen import ChatScreen
from dflash_tui.app.widgets.prompt import Prompt
from dflash_tui.app.widgets.rounds.replay_bar import ReplayBar
from dflash_tui.app.widgets.slider import BlockSlider, TemperatureSlider
from dflash_tui.core.conversation.reducer import Reducer
from dflash_tui.core.replay.bundled import find_recording
from dflash_tui.core.replay.recording import read_recording
from tests.app.conftest import Launch
from tests.app.replaying import replaying


@pytest.mark.parametrize(("size", "name"), [((120, 36), "code"), ((80, 24), "code-sampled"), ((60, 18), "maths")])
async def test_a_replay_says_what_it_is_and_shows_what_was_recorded(size: tuple[int, int], name: str) -> None:
    path = find_recording(name)
    trace = read_recording(path)
    async with replaying(path, size) as replay:
        await replay.ended()
        expected = Reducer()
        for event in trace.events():
            expected.apply(event)
        turns = replay.screen.chat.reducer.turns
        assert [turn.text for turn in turns] == [turn.text for turn in expected.turns]
        assert [turn.snapshot for turn in turns] == [turn.snapshot for turn in expected.turns]
        assert replay.screen.chat.messages[0].content == turns[0].started.question
        last = trace.steps_of_turn(replay.screen.chat.reducer.turns[-1].number)
        assert f"round {len(last) - 1} of {len(last) - 1} · ended" in replay.bar
        assert replay.screen.query_one(TemperatureSlider).value == (1 if name.endswith("sampled") else 0)
        assert ("A tiny demo model on cpu" in replay.bar) == (size[0] == 120)


async def test_nothing_can_be_asked_and_the_screen_says_why() -> None:
    async with replaying(find_recording("maths")) as replay:
        await replay.ended()
        prompt = replay.screen.query_one(Prompt)
        prompt.focus()
        prompt.text = "What is 2 + 2?"
        await replay.pilot.press("enter")
        notices = " ".join(notice.message for notice in replay.app._notifications)
        assert "This is a replay" in notices and prompt.text == "What is 2 + 2?"
        prompt.text = "/new"
        await replay.pilot.press("enter")
        assert len(replay.screen.chat.reducer.turns) == 3
        slider = replay.screen.query_one(BlockSlider)
        recorded = slider.value
        prompt.text = "/block 3"
        await replay.pilot.press("enter")
        assert slider.value == recorded and prompt.text == "/block 3", "a recording keeps its settings"


async def test_keys_pause_step_and_change_the_pace() -> None:
    async with replaying(find_recording("html"), pace=0.05) as replay:
        await replay.until(lambda: replay.source.played >= 1)
        await replay.pilot.press("space")
        assert not replay.source.playing and "paused" in replay.bar
        played = replay.source.played
        await replay.pilot.press("full_stop")
        await replay.until(lambda: replay.source.played > played and not replay.waiting)
        latest = replay.source.played - 1
        await replay.pilot.press("comma")
        await replay.until(lambda: replay.screen.viewer.position is not None)
        assert replay.screen.viewer.position is not None and replay.screen.viewer.position.step == latest - 1
        replay.screen.query_one(ReplayBar).focus()
        await replay.pilot.press("plus")
        assert replay.source.pace == 0.1
        await replay.pilot.press("end")
        await replay.ended()
        assert replay.screen.viewer.position is None and replay.source.played == 110


async def test_frames_of_a_screen_that_goes_draw_nothing(launch: Launch) -> None:
    """Its widgets go one by one, and the pump after them."""
    async with launch() as driver:
        frame, removal = driver.screen.pump.frame, driver.screen.remove()
        for _ in range(2000):
            frame()
            await asyncio.sleep(0)
        await removal


async def test_a_replay_opens_above_a_chat_and_closes_again(launch: Launch) -> None:
    async with launch() as driver:
        await driver.pilot.press("f7")
        await driver.until(lambda: type(driver.app.screen).__name__ == "RecordingPicker")
        await driver.pilot.press("enter")
        await driver.until(lambda: isinstance(driver.app.screen, ChatScreen) and driver.app.screen is not driver.screen)
        replay = driver.app.screen
        assert replay.desk.source is not None
        await driver.until(lambda: replay.desk.source.played > 0)
        await driver.pilot.press("tab", "slash", "escape", "escape")  # from the prompt, too, once its menu is closed
        await driver.until(lambda: driver.app.screen is driver.screen and driver.prompt.has_focus)
        await driver.ask_and_wait()
        assert driver.screen.chat.reducer.turn.reason == "stop"
