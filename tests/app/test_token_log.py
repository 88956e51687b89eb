"""The transcript widget alone: what it costs and what it draws."""

from __future__ import annotations

import asyncio

from textual.app import ComposeResult
from textual.geometry import Region

from dflash_tui.app.options import OptionsApp
from dflash_tui.app.theming import default_variables
from dflash_tui.app.widgets.token_log import TokenLog
from dflash_tui.core.settings.config import ScreenOptions
from dflash_tui.core.text.spans import Span


class LogApp(OptionsApp):
    screen_options = ScreenOptions()

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return default_variables()

    def compose(self) -> ComposeResult:
        yield TokenLog()


async def test_rows_fill_the_width_whatever_is_in_them() -> None:
    app = LogApp()
    async with app.run_test(size=(40, 12)):
        log = app.query_one(TokenLog)
        log.append([Span("漢字 👨‍👩‍👧 e\u0301 \x1b[2J\u202e tail   \n" * 20, "corrected")])
        for strip in log.render_lines(Region(0, 0, log.size.width, log.size.height)):
            assert strip.cell_length == log.size.width
            assert "\x1b" not in strip.text and "\u202e" not in strip.text


async def test_nothing_calls_to_an_end_that_is_blank() -> None:
    app = LogApp()
    async with app.run_test(size=(40, 12)) as pilot:
        log = app.query_one(TokenLog)
        for text, called in (("line\n" * 12, False), ("more", True)):
            log.append([Span(text, "note")])
            log.scroll_to(y=0, animate=False, immediate=True)
            await pilot.pause()
            drawn = log.render_lines(Region(0, 0, log.size.width, log.size.height))
            assert ("End" in drawn[-1].text) == called


async def test_blanks_are_not_underlined() -> None:
    app = LogApp()
    async with app.run_test(size=(40, 12)):
        log = app.query_one(TokenLog)
        log.append([Span("plain", "accepted"), Span(" fixed now", "corrected")])
        segments = list(log.render_lines(Region(0, 0, log.size.width, 1))[0])
        underlined = {segment.text for segment in segments if segment.style and segment.style.underline}
        assert underlined == {"fixed", "now"}


async def test_the_newest_block_stands_on_a_ground_for_a_moment() -> None:
    """On its own look's, and what nobody guessed on none."""
    app = LogApp()
    async with app.run_test(size=(60, 12)) as pilot:
        log = app.query_one(TokenLog)

        def grounds() -> dict[str, str | None]:
            row = list(log.render_lines(Region(0, 0, log.size.width, 1))[0])
            return {part.text.strip(): part.style and part.style.bgcolor and part.style.bgcolor.name for part in row}

        log.append([Span("one", "accepted")])
        log.append([Span(" two", "accepted"), Span(" three", "corrected"), Span(" four", "plain")])
        seen = grounds()
        assert seen["one"] == seen["four"] and len({seen["two"], seen["three"], seen["four"]}) == 3
        async with asyncio.timeout(10):
            while len(set(grounds().values())) > 1:
                await pilot.pause(0.05)
        log.append([Span(" brought back", "accepted")] * 200)
        assert len(set(grounds().values())) == 1, "an answer that comes back was not just written"
