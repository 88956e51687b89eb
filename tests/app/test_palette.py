"""The command palette, opened and closed in a hurry."""

from __future__ import annotations

from textual.command import CommandPalette
from textual.css.query import NoMatches

from dflash_tui.app.screens.palette import Palette

from .conftest import Launch


async def test_keys_in_a_hurry_leave_the_chat_there(launch: Launch) -> None:
    async with launch() as chat:
        await chat.pilot.press("ctrl+g")
        for key in ("escape", "ctrl+t", "ctrl+p", "escape", "escape", "ctrl+p", "escape"):
            chat.app.simulate_key(key)
        for _ in range(3):
            await chat.pilot.press("escape")
        await chat.until(lambda: chat.app.screen is chat.screen)
        assert chat.app.is_running and chat.app._exception is None


async def test_a_search_that_finds_no_list_ends_alone(launch: Launch) -> None:
    async with launch() as chat:
        await chat.pilot.press("ctrl+p")
        palette = chat.app.screen
        assert isinstance(palette, Palette) and CommandPalette.is_open(chat.app)
        await palette.query("CommandList").remove()
        search = palette._gather_commands("")
        await chat.until(lambda: search.is_finished)
        assert isinstance(search.error, NoMatches)
        await chat.pilot.press("escape")
        await chat.until(lambda: chat.app.screen is chat.screen)
        assert chat.app._exception is None


async def test_pages_of_a_list_that_is_not_there_yet(launch: Launch) -> None:
    async with launch() as chat:
        for key in ("ctrl+p", "pagedown", "pageup", "end", "a", "pagedown"):
            chat.app.simulate_key(key)
        await chat.until(lambda: isinstance(chat.app.screen, Palette))
        await chat.pilot.press("pagedown", "escape")
        await chat.until(lambda: chat.app.screen is chat.screen)
        assert chat.app._exception is None
