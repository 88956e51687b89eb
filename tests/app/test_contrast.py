"""Every word on every screen can be read in every theme that comes with the program, placeholders included."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.app import App
from textual.color import Color
from textual.screen import ModalScreen

from dflash_tui.app.lesson import LessonApp
from dflash_tui.app.theming import READABLE, bundled_themes_dir, contrast
from dflash_tui.app.widgets.fence import NamedFence
from dflash_tui.core.lesson.bundled import open_lesson
from dflash_tui.core.settings.config import ScreenOptions

from .conftest import Driver, Launch

THEMES = sorted(path.stem for path in bundled_themes_dir().glob("*.toml"))
STILL = ScreenOptions(reduced_motion=True)


async def nothing(chat: Driver) -> None:
    """The screen as it comes up."""


async def asked(chat: Driver, *keys: str) -> None:
    await chat.ask_and_wait()
    await chat.pilot.press(*keys)


async def drawn(chat: Driver) -> None:
    await asked(chat, "ctrl+t")
    await chat.until(lambda: bool(chat.screen.query(NamedFence)))


SCREENS: dict[str, Callable[[Driver], Awaitable[None]]] = {
    "start": nothing,
    "chat": asked,
    "steps": lambda chat: asked(chat, "f3", "left_curly_bracket"),
    "looking back": lambda chat: asked(chat, "f3", "home"),
    "presenter": lambda chat: asked(chat, "f8", *["right_square_bracket"] * 4),
    "help": lambda chat: asked(chat, "f1"),
    "themes": lambda chat: asked(chat, *"/theme", "enter"),
    "commands": lambda chat: asked(chat, "/"),
    "drawn": drawn,
    "tree": lambda chat: asked(chat, "f9"),
    "sessions": lambda chat: asked(chat, "ctrl+o"),
}


def unread(app: App[None]) -> set[str]:
    """Words that are too near to their ground, and by how much."""
    found = set()
    box = app.screen.children[0].region if isinstance(app.screen, ModalScreen) else app.screen.region
    for strip in app.screen._compositor.render_strips()[box.y : box.bottom]:
        for text, style, _ in strip.crop(box.x, box.right):
            if style is None or style.color is None or style.bgcolor is None:
                continue
            if style.color.triplet is None or style.bgcolor.triplet is None or not any(map(str.isalnum, text)):
                continue
            ink, ground = (Color(*color).hex for color in (style.color.triplet, style.bgcolor.triplet))
            if style.reverse:
                ink, ground = ground, ink
            if ink != ground and (ratio := contrast(ink, ground)) < READABLE:
                found.add(f"{text.strip()} {ink} on {ground}: {ratio:.1f}")
    return found


async def check(app: App[None], settle: Callable[[], Awaitable[None]]) -> None:
    for theme in THEMES:
        app.theme = theme
        await settle()
        assert not unread(app), theme


@pytest.mark.parametrize("name", SCREENS)
async def test_every_word_can_be_read(launch: Launch, name: str) -> None:
    async with launch(screen_options=STILL) as chat:
        await SCREENS[name](chat)
        await check(chat.app, chat.pilot.pause)


async def test_every_word_of_a_lesson_can_be_read(tmp_path: Path) -> None:
    app = LessonApp(*open_lesson(None), tmp_path, screen_options=STILL)
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("right", "right")
        await check(app, pilot.pause)
