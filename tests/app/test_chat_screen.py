"""The chat as a user meets it: keys in, screen out, on the scripted engine."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import pytest
from textual import events
from textual.geometry import Size

from dflash_tui.app.keyboard import PatientDriver
from dflash_tui.app.widgets.gauge_panel import GaugePanel
from dflash_tui.app.widgets.loading import LoadPanel
from dflash_tui.app.widgets.rounds.round_strip import RoundStrip
from dflash_tui.app.widgets.slider import BlockSlider
from dflash_tui.app.widgets.status import RUNNING, StatusFacts, StatusLine
from dflash_tui.app.widgets.token_log import TokenLog
from dflash_tui.core.text.spans import Span
from engine.commands import Adjust, Ask, Close, Stop
from engine.events import EngineError, LoadProgress
from support.scripted_engine import PAGE
from tests.surroundings import threads

from .conftest import Driver, Launch

LONG = PAGE * 400
"""Does not end while a test runs: it takes a minute."""


async def test_an_answer_arrives_whole(launch: Launch) -> None:
    async with launch() as chat:
        await chat.ask_and_wait("Write a page")
        assert chat.screen.chat.answers == [PAGE]
        assert PAGE in chat.log.text
        assert "Write a page" in chat.log.text and "tokens a round" in chat.log.text
        assert chat.prompt.text == ""
        assert chat.screen.query_one(RoundStrip).step.draft


async def test_escape_stops_and_keeps_what_was_written(launch: Launch) -> None:
    async with launch(answer=LONG) as chat:
        await chat.ask()
        await chat.until(lambda: len(chat.log.text) > 500)
        await chat.pilot.press("escape")
        await chat.until(lambda: not chat.screen.chat.busy)
        assert "⏹ stopped" in chat.log.text
        (answer,) = chat.screen.chat.answers
        assert LONG.startswith(answer) and 0 < len(answer) < len(LONG)
        assert answer in chat.log.text
        await chat.ask("again")
        await chat.pilot.press("escape")
        await chat.until(lambda: not chat.screen.chat.busy, seconds=6)
        assert chat.log.text.count("⏹ stopped") == 2, "right after Enter it isn't lost"


async def test_sliders_act_while_it_streams_and_stay(launch: Launch) -> None:
    async with launch(answer=LONG) as chat:
        await chat.ask()
        await chat.until(lambda: chat.screen.chat.reducer.busy)
        await chat.pilot.press("alt+down", "alt+down", "alt+right")
        assert chat.sent(Adjust) == [
            Adjust(block_size=16, turn=1), Adjust(block_size=15, turn=1), Adjust(temperature=0.05, turn=1)
        ]  # fmt: skip
        turn = chat.screen.chat.reducer.turn
        await chat.until(lambda: turn.latest is not None and turn.latest.block_size == 15)
        await chat.pilot.press("escape")
        await chat.until(lambda: not chat.screen.chat.busy)
        await chat.ask("again")
        assert chat.sent(Ask)[-1].settings.block_size == 15
        assert chat.sent(Ask)[-1].settings.temperature == 0.05


async def test_a_slider_by_the_mouse(chat: Driver) -> None:
    block = chat.screen.query_one(BlockSlider)
    left, right = block.track
    await chat.pilot.mouse_down(block, offset=(left, 0))
    assert chat.screen.chat.settings.block_size == 2
    await chat.pilot.hover(block, offset=((left + right) // 2, 0))
    assert 8 <= chat.screen.chat.settings.block_size <= 10
    await chat.pilot.mouse_up(block, offset=((left + right) // 2, 0))
    await chat.pilot.hover(block, offset=(left, 0))
    assert chat.screen.chat.settings.block_size >= 8


async def test_an_engine_that_can_not_load_says_why(launch: Launch) -> None:
    error = EngineError("weights", "model.safetensors is truncated.", "Run make again.", fatal=True)
    async with launch(ready=False, load_error=error) as chat:
        await chat.until(lambda: chat.screen.chat.reducer.phase == "failed")
        panel = chat.screen.query_one(LoadPanel)
        await chat.until(lambda: "truncated" in str(panel.render()))
        assert panel.display and "Run make again." in str(panel.render())
        await chat.ask("hello?")
        assert chat.prompt.text == "hello?" and "ended" in chat.notices()
        assert chat.app.failure_kind == "weights"


async def test_what_is_typed_and_pasted_is_asked_as_it_is(launch: Launch) -> None:
    pasted = "\n".join(f"line {number}" for number in range(24)) + "\n"
    signs = "a\x1b[31mb\u202e\u2028c " * 9  # two rows, by the width of what is shown
    async with launch(size=(80, 24), answer="ok") as chat:
        await chat.pilot.press("a", "ctrl+j", "b", "alt+enter", "c")
        assert chat.prompt.text == "a\nb\nc" and chat.prompt.size.height == 3
        await chat.pilot.press("enter")
        await chat.until(lambda: not chat.screen.chat.busy)
        await chat.pilot.press("d", "up")
        assert chat.prompt.text == "a\nb\nc"
        await chat.pilot.press("down")
        assert chat.prompt.text == "d"
        await chat.pilot.press("ctrl+d")
        assert chat.prompt.text == "d" and not chat.app._exit, "it quits only when the prompt is empty"
        chat.prompt.clear()

        chat.prompt.post_message(events.Paste(pasted.replace("\n", "\r")))
        await chat.pilot.pause()
        assert chat.prompt.text == "[Pasted #1 +24 lines]" and len(chat.sent(Ask)) == 1, "a paste never sends"
        await chat.pilot.press("!", "enter")
        await chat.until(lambda: not chat.screen.chat.busy)
        assert "[Pasted #1 +24 lines]\n!" in chat.log.text and "line 7" not in chat.log.text
        await chat.pilot.press("alt+o")
        await chat.until(lambda: "line 7\n" in chat.app.screen.query_one(TokenLog).text)
        await chat.pilot.press("escape")

        chat.prompt.post_message(events.Paste(signs))
        await chat.until(lambda: chat.prompt.text == signs)
        await chat.pilot.press("left", "x", "alt+z")
        rows = [chat.prompt.render_line(row).text.rstrip() for row in range(chat.prompt.wrapped_document.height)]
        assert " ".join(rows) == ("a␛[31mb��c " * 9).rstrip() and max(map(len, rows)) <= chat.prompt.wrap_width
        await chat.pilot.press("enter")
        await chat.until(lambda: not chat.screen.chat.busy)
        assert [ask.messages[-1].content for ask in chat.sent(Ask)] == ["a\nb\nc", pasted + "!", signs]
        await chat.pilot.press("ctrl+d")
        await chat.pilot.pause()
        assert chat.app._exit


async def test_control_c_copies_then_stops_then_empties_then_quits_which_closes_the_engine(launch: Launch) -> None:
    before = threads("engine")
    async with launch(answer=LONG) as chat:
        chat.prompt.text = "copy"
        chat.prompt.select_all()
        await chat.pilot.press("ctrl+c")
        assert chat.app.clipboard == "copy"
        chat.prompt.clear()
        await chat.ask("go")
        await chat.pilot.press("ctrl+c")
        assert chat.sent(Stop)
        await chat.until(lambda: not chat.screen.chat.busy)
        assert chat.app._exit is False
        chat.prompt.text = "two\nlines"
        await chat.pilot.press("ctrl+c")
        assert chat.prompt.text == "" and chat.app._exit is False
        await chat.pilot.press("alt+z")
        assert chat.prompt.text == "two\nlines"
        await chat.pilot.press("ctrl+c", "ctrl+c")
        assert chat.app._exit is False
        await chat.pilot.press("ctrl+c")
        assert chat.app._exit
    assert chat.sent(Close)
    chat.engine.join(60)
    assert threads("engine") <= before


async def test_text_that_arrives_with_a_key_does_not_undo_it(launch: Launch) -> None:
    async with launch(answer="a line\n" * 100) as chat:
        await chat.ask_and_wait()
        for scroll in (chat.log.action_page_up, chat.log.action_scroll_up, chat.log.action_scroll_home):
            chat.log.follow()
            await chat.pilot.pause()
            scroll()
            chat.log.append([Span("more\n", "prompt")])
            await chat.until(lambda: chat.log.scroll_offset.y < chat.log.max_scroll_y)
            assert not chat.log.following


async def test_selected_text_is_copied_without_the_wrapping(launch: Launch) -> None:
    async with launch(size=(60, 24), answer="word " * 60 + "end") as chat:
        await chat.ask_and_wait("q")
        chat.log.text_select_all()
        await chat.pilot.pause()
        await chat.pilot.press("ctrl+c")
        assert "word " * 60 + "end" in chat.app.clipboard


async def test_while_an_answer_runs_it_says_how_to_stop_it(launch: Launch) -> None:
    """Beside the state and the context: other figures have their gauges."""
    figures = StatusFacts("streaming", True, 173.0, 5.0, 1927, 8192, 1775, RUNNING)
    async with launch(size=(80, 24)) as chat:
        status = chat.screen.query_one(StatusLine)
        status.facts = figures
        line = status.render().plain
        assert "Esc stop · F5 slow · F1 help" in line and "streaming · context 1927/8192" in line
        status.facts = replace(figures, context_length=8100)
        assert "context 8100/8192, 92 left" in status.render().plain, "a context that is nearly full stays"


async def test_loading_draws_no_gauges_and_lays_nothing_out_in_a_phase(
    launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever loads needs the interpreter: only the line that changed is drawn."""
    drawn: list[bool] = []
    monkeypatch.setattr(GaugePanel, "show", lambda *_: drawn.append(True))
    async with launch(ready=False, load_seconds=3600.0) as chat:
        panel = chat.screen.query_one(LoadPanel)
        await chat.until(lambda: "import torch" in str(panel.render()))
        layouts: list[bool] = []
        lay_out = type(chat.screen)._refresh_layout
        monkeypatch.setattr(
            type(chat.screen), "_refresh_layout", lambda *given, **more: layouts.append(True) or lay_out(*given, **more)
        )
        for gigabytes in range(1, 51):
            chat.screen.queue.put(LoadProgress("import torch", gigabytes * 10**9, 50 * 10**9, "bytes"))
            chat.screen.pump.frame()
            await chat.pilot.pause()
        assert "50.0 of 50.0 GB" in str(panel.render()) and not layouts and not drawn
        chat.screen.queue.put(LoadProgress("warm up", 0, 0))
        chat.screen.pump.frame()
        await chat.pilot.pause()
        assert layouts and "✓ import torch" in str(panel.render())


async def test_keys_and_sizes_may_overtake_a_screen_that_is_taken_away(chat: Driver) -> None:
    chat.app.action_command_palette()
    chat.app.pop_screen()
    chat.app.action_command_palette()
    await chat.pilot.press("escape")
    chat.screen.show_help()
    await chat.pilot.pause()
    box = chat.app.screen
    await box.remove_children()
    box.post_message(events.Resize(Size(60, 18), Size(60, 18)))
    chat.app.pop_screen()
    await chat.until(lambda: chat.app.screen is chat.screen and not box.is_running)


async def test_a_size_that_the_terminal_has_no_more_is_not_laid_out(
    chat: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    laid_out: list[Size] = []
    monkeypatch.setattr(chat.screen, "_screen_resized", laid_out.append)
    chat.app.overtaken = lambda size: size.width == 50
    for width in (50, 60):  # a key between two sizes: Textual itself drops one of two that follow each other
        chat.screen.post_message(events.Resize(Size(width, 20), Size(width, 20)))
        await chat.pilot.press("x")
    assert laid_out == [Size(60, 20)]


async def test_a_size_that_the_terminal_tells_before_the_system_knows_it_is_laid_out(
    chat: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda *_: os.terminal_size((100, 30)))
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    driver, size = PatientDriver(chat.app), Size(60, 20)
    driver.process_message(events.Resize(size, size))
    assert chat.app.overtaken(Size(100, 30))
    await chat.until(lambda: chat.screen.query_one(StatusLine).region.bottom == size.height)
