"""The screen as the user asked for it: in ASCII, without motion."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.widgets import Input

from dflash_tui.app.ascii import ASCII
from dflash_tui.app.glyphs import large_number
from dflash_tui.app.screens.help import HelpScreen
from dflash_tui.core.settings.config import ScreenOptions
from tests.app.conftest import Driver, Launch


def drawn(chat: Driver) -> str:
    """The screen's characters, as they would reach the terminal."""
    return "\n".join("".join(segment.text for segment in line) for line in chat.app.screen._compositor.render_strips())


def test_every_glyph_keeps_its_width() -> None:
    for glyph, plain in ASCII.items():
        assert cell_len(chr(glyph)) == 1 and len(plain) == 1 and 32 <= ord(plain) < 127, chr(glyph)


def test_everything_the_program_draws_with_has_a_substitute() -> None:
    """Whatever stands between quotes in the widgets and screens, and in the style sheets' borders."""
    package = Path(__file__).parents[3] / "dflash_tui"
    strange = {
        (path.name, character)
        for part in ("app", "core")
        for path in (package / part).rglob("*.py")
        if path.name != "ascii.py"
        for line in path.read_text().splitlines()
        for character in line
        if ord(character) > 127 and ord(character) not in ASCII and character != "\N{REPLACEMENT CHARACTER}"
    }
    assert strange == set()


@pytest.mark.parametrize("size", [(120, 36), (80, 24), (60, 18)])
async def test_the_screen_in_ascii(launch: Launch, size: tuple[int, int]) -> None:
    async with launch(size=size, screen_options=ScreenOptions(ascii=True)) as chat:
        await chat.ask_and_wait()
        chat.screen.draw_gauges()
        await chat.pilot.pause()
        assert drawn(chat).isascii()
        await chat.pilot.press("f1")
        await chat.until(lambda: isinstance(chat.app.screen, HelpScreen))
        assert drawn(chat).isascii()


@pytest.mark.parametrize("speed", [10.0, 1000.0, 25_000.0])
async def test_large_digits_can_be_read_in_ascii(launch: Launch, speed: float) -> None:
    assert len({large_number(digit, ascii=True) for digit in "0123456789"}) == 10
    async with launch(speed=speed, screen_options=ScreenOptions(ascii=True)) as chat:
        await chat.ask_and_wait()
        chat.screen.draw_gauges()
        await chat.pilot.pause()
        shown = f"{speed:,.0f}".replace(",", " ")
        assert all(row.rstrip() in drawn(chat) for row in large_number(shown, ascii=True))


async def test_reduced_motion_reaches_slow_motion_and_the_cursor(launch: Launch) -> None:
    async with launch(screen_options=ScreenOptions(reduced_motion=True)) as chat:
        assert not chat.screen.viewer.motion.moves
        chat.screen.draw_status()
        assert not chat.prompt.cursor_blink
        chat.log._landing.begin(0, 5)
        assert not chat.log._landing.reaches(5), "what has just been written has no ground"
        await chat.pilot.press("ctrl+p")
        await chat.until(lambda: isinstance(chat.app.focused, Input))
        assert isinstance(chat.app.focused, Input) and not chat.app.focused.cursor_blink
