"""Getting around by the keyboard: Tab, letters, and text typed in the wrong place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual.keys import _character_to_key

from dflash_tui.app.widgets.prompt import Prompt
from dflash_tui.app.widgets.slider import PACES, BlockSlider, PaceSlider, TemperatureSlider
from dflash_tui.app.widgets.status import StatusLine
from dflash_tui.app.widgets.token_log import TokenLog
from engine.commands import AUTO, Adjust, Ask
from support.scripted_engine import PAGE
from tests.app.conftest import Driver, Launch


async def test_the_first_tab_from_the_prompt_reaches_the_sliders(chat: Driver) -> None:
    for kind in (BlockSlider, TemperatureSlider, PaceSlider):
        await chat.pilot.press("tab")
        assert isinstance(chat.screen.focused, kind)
    await chat.pilot.press("shift+tab", "shift+tab", "shift+tab")
    assert isinstance(chat.screen.focused, Prompt)
    await chat.pilot.press("shift+tab")
    assert isinstance(chat.screen.focused, TokenLog)


async def test_a_focused_slider_says_when_it_acts(chat: Driver) -> None:
    await chat.pilot.resize_terminal(80, 24)
    for widget, words in (("#block", "next round"), ("#temperature", "next round"), ("#pace", "at once")):
        chat.screen.query_one(widget).focus()
        status = chat.screen.query_one(StatusLine)
        await chat.until(lambda status=status, words=words: words in status.render().plain)
        assert status.render().cell_length <= 78
    chat.prompt.focus()
    await chat.until(lambda: "ready" in status.render().plain)


async def test_text_typed_on_a_slider_goes_to_the_prompt(chat: Driver) -> None:
    block = chat.screen.query_one(BlockSlider)
    block.focus()
    await chat.pilot.press("1", "2")
    assert block.value == 12 and chat.prompt.text == ""
    await chat.pilot.press("H", "e", "y", "space", "1")
    assert chat.prompt.text == "Hey 1" and chat.screen.focused is chat.prompt
    assert block.value == 12


async def test_text_that_comes_in_a_burst_goes_to_the_prompt_whole_and_in_order(chat: Driver) -> None:
    block = chat.screen.query_one(BlockSlider)
    for widget in (block, chat.log):
        before = block.value
        chat.prompt.text = ""
        widget.focus()
        await chat.until(lambda widget=widget: chat.screen.focused is widget)
        burst(chat, "Write me 5 lines, [now]")
        await chat.until(lambda: chat.prompt.text == "Write me 5 lines, [now]")
        assert block.value == before


async def test_what_the_prompt_does_by_keys_stays_in_order_too(chat: Driver) -> None:
    burst(chat, "one", "ctrl+j", "twp", "backspace", "o", "home", "x", "shift+enter", "y", "end", "!")
    await chat.until(lambda: chat.prompt.text.endswith("!"))
    assert chat.prompt.text == "one\nx\nytwo!"


def burst(chat: Driver, *typed: str) -> None:
    """Keys and texts that arrive together, as a slow line brings them."""
    named = {"ctrl+j", "shift+enter", "backspace", "home", "end"}
    for text in typed:
        keys = [(text, None)] if text in named else [(_character_to_key(each), each) for each in text]
        for key, character in keys:
            chat.app.post_message(events.Key(key, character))


async def test_keys_of_the_transcript_stay_its_own(launch: Launch) -> None:
    async with launch(answer="word " * 600) as chat:
        await chat.ask_and_wait()
        chat.log.focus()
        await chat.pilot.press("g")
        assert chat.log.scroll_offset.y == 0 and chat.prompt.text == ""
        await chat.pilot.press("W")
        assert chat.prompt.text == "W"


async def test_choosing_the_width_shows_on_the_slider(launch: Launch) -> None:
    async with launch(answer=PAGE * 400) as chat:
        await chat.ask()
        await chat.until(lambda: chat.screen.chat.reducer.busy)
        block = chat.screen.query_one(BlockSlider)
        assert chat.sent(Ask)[0].settings.block_size == AUTO and block.describe() == "auto"
        await chat.ask("/block 16")
        assert chat.sent(Adjust) == [Adjust(block_size=16, turn=1)] and block.describe() == "16 (15+1)"
        await chat.ask("/block sometimes")
        assert "auto|2–16" in chat.notices()
        chat.prompt.clear()
        await chat.ask("/block auto")
        assert chat.screen.chat.settings.block_size == AUTO and block.describe() == "auto"


async def test_the_pace_moves_from_stop_to_stop_and_takes_what_is_typed(chat: Driver) -> None:
    pace = chat.screen.query_one(PaceSlider)
    pace.focus()
    assert pace.describe() == "full"
    for expected in reversed(PACES[:-1]):
        await chat.pilot.press("left")
        assert pace.value == pytest.approx(expected)
    await chat.pilot.press("left")
    assert pace.value == PACES[0]
    await chat.pilot.press("0", ".", "3")
    assert pace.value == pytest.approx(0.3) and pace.describe() == "0.3×"
    await chat.pilot.press("end")
    assert pace.describe() == "full"


@given(st.floats(PACES[0], PACES[-1]))
def test_the_knob_of_the_pace_is_in_order(pace: float) -> None:
    slider, faster = PaceSlider("pace", pace, id="pace"), PaceSlider("pace", min(pace + 0.1, 1.0), id="pace")
    assert 0 <= slider.share <= faster.share <= 1
    assert PACES[0] <= slider.value_at(slider.share) <= PACES[-1]


async def test_a_drafter_of_smaller_blocks_shortens_the_slider(chat: Driver) -> None:
    block = chat.screen.query_one(BlockSlider)
    block.limit(12)
    await chat.ask("/block auto")
    assert block.describe() == "auto" and block.sizes == range(2, 13)
    block.focus()
    await chat.pilot.press("left")
    assert block.size_chosen == chat.screen.chat.settings.block_size == 12
    block.limit(8)
    assert block.describe() == "8 (7+1)"
    block.show(16)  # of a trace, say
    assert block.size_chosen == 8
    block.limit(16)
