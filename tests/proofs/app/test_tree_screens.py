"""The tree and the search: by key and by mouse, at every size."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from textual.widgets import OptionList

from dflash_tui.app.screens.sessions import SessionsScreen
from dflash_tui.app.screens.tree import TreeScreen
from dflash_tui.core.files.places import sessions_directory
from dflash_tui.core.sessions.sessions import load_session
from tests.app.conftest import Driver, Launch
from tests.core.sessions.test_archive import write

SIZES = [(120, 36), (80, 24), (60, 18)]


async def grow(chat: Driver) -> None:
    """1 ─ 2 ─ 3, and 4 beside 2."""
    for text in ("about the sea", "and mountains", "/name hills", "thanks", "/retry 2 block 4"):
        await chat.ask_and_wait(text)


def lines(screen: TreeScreen | SessionsScreen) -> list[str]:
    options = screen.query_one(OptionList)
    return [str(options.get_option_at_index(place).prompt) for place in range(options.option_count)]


@pytest.mark.parametrize("size", SIZES)
async def test_the_tree_shows_every_version_and_goes_to_each(launch: Launch, size: tuple[int, int]) -> None:
    async with launch(size=size, answer="Four.") as chat:
        await grow(chat)
        await chat.pilot.press("f9")
        screen = chat.app.screen
        assert isinstance(screen, TreeScreen)
        shown = lines(screen)
        assert [line.lstrip("│├└─ ")[0] for line in shown] == ["●", "○", "○", "◉"]
        assert "├─" in shown[1] and "hills" in shown[1] and "└─" in shown[3] and "block 4" in shown[3]
        assert all(cell_len(line) <= size[0] - 6 and "tok/s" in line for line in shown)
        assert screen.query_one(OptionList).highlighted == 3, "where the user is"
        await chat.pilot.press("up", "enter")
        assert chat.screen.chat.tree.here == 3 and "thanks" in chat.log.text


async def test_the_tree_by_mouse_and_its_other_keys(launch: Launch) -> None:
    async with launch(answer="Four.") as chat:
        await grow(chat)
        await chat.ask("/tree mountains")
        options = chat.app.screen.query_one(OptionList)
        assert options.option_count == 2
        await chat.pilot.click(OptionList, offset=(12, 0))
        assert chat.screen.chat.tree.here == 2
        await chat.pilot.press("f9", *"thanks", "ctrl+e")
        assert chat.prompt.text == "thanks" and "new version" in chat.notices()
        await chat.pilot.press("escape", "f9", "f2", *"sea", "enter", "escape")
        assert load_session(chat.screen.queue.log.path).tree[2].name == "sea"
        await chat.pilot.press("f9", *"thanks", "ctrl+r")
        await chat.until(lambda: len(chat.screen.chat.tree) == 5 and not chat.screen.chat.busy)


async def test_what_was_said_is_found_and_opened_in_its_place(launch: Launch) -> None:
    write(sessions_directory(), "about drones", "more", "and more", answer="They fly over the needle.", at=1)
    async with launch(size=(80, 24), answer="Four.") as chat:
        await chat.ask_and_wait("one")
        await chat.ask("/sessions needle")
        screen = chat.app.screen
        assert isinstance(screen, SessionsScreen)
        await chat.until(lambda: len(lines(screen)) == 1)
        assert [match.turn for match in screen.matches.values()] == [3]
        await chat.pilot.press("enter")
        await chat.until(lambda: "about drones" in chat.log.text)
        assert chat.log.text.count("needle") == 3
