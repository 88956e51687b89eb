"""Versions on the screen: asked again and edited, turned over by key and mouse, named, and the same after a restart."""

from __future__ import annotations

from dflash_tui.app.widgets.token_log import TokenLog
from dflash_tui.core.sessions.sessions import load_session
from engine.commands import Ask

from .conftest import Driver, Launch


async def click_mark(chat: Driver, text: str, part: str) -> None:
    """Click ``part`` of the last row that holds ``text``."""
    rows = [row.text for row in chat.log.rows]
    place = max(number for number, row in enumerate(rows) if text in row)
    offset = (rows[place].rindex(text) + text.index(part), place - chat.log.scroll_offset.y)
    await chat.pilot.click(TokenLog, offset=offset)


async def test_versions_turn_over_by_a_click(launch: Launch) -> None:
    async with launch(answer="Four.") as chat:
        await chat.ask_and_wait("one")
        await chat.ask_and_wait("/retry")
        await chat.ask_and_wait("/retry block 4")
        assert [ask.settings.block_size for ask in chat.sent(Ask)] == ["auto", "auto", 4]
        assert chat.screen.chat.settings.block_size == "auto", "for that answer alone"
        await chat.ask_and_wait("two")
        await click_mark(chat, "‹ 3/3 ›", "‹")
        assert "‹ 2/3 ›" in chat.log.text and "two" not in chat.log.text
        assert chat.screen.viewer.turn is not None and chat.screen.viewer.turn.number == 2, "the gauges show it, too"
        assert [turn.number for turn in chat.screen.viewer.travel.turns] == [2]
        await click_mark(chat, "‹ 2/3 ›", "›")
        assert "‹ 3/3 ›" in chat.log.text and "two" in chat.log.text
        assert [turn.number for turn in load_session(chat.screen.queue.log.path).turns] == [3, 4]
        chat.prompt.focus()
        await chat.ask("/name trunk")
        await chat.ask("/edit 4")
        chat.prompt.text = "other"
        await chat.pilot.press("enter")
        await chat.until(lambda: not chat.screen.chat.busy and "other  ‹ 2/2 ›" in chat.log.text)
        await chat.ask("/go trunk")
        assert "two  ‹ 1/2 ›   trunk" in chat.log.text


async def test_a_restart_shows_the_same_versions(launch: Launch) -> None:
    async with launch(answer="Four.") as chat:
        await chat.ask_and_wait("one")
        await chat.ask_and_wait("/retry")
        await chat.ask_and_wait("two")
        await chat.ask("/edit 3")
        chat.prompt.text = "TWO"
        await chat.pilot.press("enter")
        await chat.until(lambda: not chat.screen.chat.busy)
        first, shown = chat.screen.queue.log.path, chat.log.text[chat.log.text.index("one\n") :]
        await chat.ask("/new")
        await chat.ask_and_wait("elsewhere")
        await chat.ask(f"/resume {first.stem}")
        assert chat.log.text == shown and "‹ 2/2 ›" in shown
        before = first.read_bytes()
        await click_mark(chat, "TWO  ‹ 2/2 ›", "‹")
        assert "two  ‹ 1/2 ›" in chat.log.text and first.read_bytes().startswith(before)


async def test_a_version_that_waits_for_the_models_is_withdrawn(launch: Launch) -> None:
    async with launch(ready=False, load_seconds=8) as chat:
        await chat.ask("one")
        await chat.pilot.press("escape")
        assert "not asked" in chat.log.text and "one" not in chat.log.text.split()
        assert len(load_session(chat.screen.queue.log.path).tree) == 0
