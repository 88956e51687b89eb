"""Getting around by the keyboard: Tab, letters, and text typed in the wrong place."""

from __future__ import annotations

import pytest
from textual import events
from textual.keys import _character_to_key

from dflash_tui.app.widgets.slider import PACES, BlockSlider, PaceSlider
from tests.app.conftest import Driver


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
