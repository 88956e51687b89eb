"""Every word on every screen can be read in the themes that come with the program, placeholders included: with every
commit in another third of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from textual.app import App
from textual.color import Color
from textual.screen import ModalScreen

from dflash_tui.app.theming import READABLE, contrast
from dflash_tui.app.widgets.fence import NamedFence
from dflash_tui.app.widgets.slider import Slider
from dflash_tui.core.files.places import bundled_themes_dir
from dflash_tui.core.settings.config import ScreenOptions
from tests.app.conftest import Launch
from tests.pace import in_turn

THEMES = in_turn(sorted(path.stem for path in bundled_themes_dir().glob("*.toml")), 3)
STILL = ScreenOptions(reduced_motion=True)


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


async def read_in_themes(app: App[None], settle: Callable[[], Awaitable[None]]) -> None:
    for theme in THEMES:
        app.theme = theme
        await settle()
        assert not unread(app), theme


async def test_every_word_can_be_read(launch: Launch) -> None:
    """On what there are no pictures of: those are read where they are compared."""
    async with launch(screen_options=STILL) as chat:
        await chat.ask_and_wait()
        for keys in (["f3", "home"], ["/"], ["f9"], ["ctrl+t"], ["ctrl+p"], [*"/theme", "enter"]):
            await chat.pilot.press(*keys)
            if keys == ["ctrl+t"]:
                await chat.until(lambda: bool(chat.screen.query(NamedFence)))
            await read_in_themes(chat.app, chat.pilot.pause)
            await chat.pilot.press(*["ctrl+t"] if keys == ["ctrl+t"] else ["escape", "ctrl+u"])
        for slider in chat.screen.query(Slider):
            slider.offer("the server decides")
        await read_in_themes(chat.app, chat.pilot.pause)
