"""The lesson's and the tour's screen: keys, sizes, pages that play, and where it was left."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from dflash_tui.app.course import CourseApp
from dflash_tui.app.screens.course import CourseScreen
from dflash_tui.app.widgets.rounds.large_round import LargeRound
from dflash_tui.app.widgets.rounds.step_table import StepTable
from dflash_tui.core.lesson.course import Course
from dflash_tui.core.lesson.lesson import open_lesson
from dflash_tui.core.lesson.tour import open_tour
from dflash_tui.core.settings.config import ScreenOptions
from tests.app.conftest import Launch

Open = Callable[..., AbstractAsyncContextManager[tuple[CourseScreen, Pilot[None]]]]


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """``async with course(open_lesson(), size) as (screen, pilot)``; places are kept for the length of a test."""
    monkeypatch.setenv("DFLASH_CHAT_STATE", str(tmp_path / "state"))

    @asynccontextmanager
    async def opened(
        what: Course, size: tuple[int, int] = (120, 36), moves: bool = False
    ) -> AsyncIterator[tuple[CourseScreen, Pilot[None]]]:
        app = CourseApp(what, tmp_path / "out", screen_options=ScreenOptions(reduced_motion=not moves))
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            yield app.course_screen, pilot

    return opened


def shown(screen: CourseScreen) -> str:
    """The words of the screen as they are drawn."""
    return "\n".join(strip.text for strip in screen._compositor.render_strips())


def keys(screen: CourseScreen) -> str:
    return str(screen.query_one("#course-keys", Static).render())


async def test_keys_move_between_pages_and_the_last_opens_the_chat(course: Open) -> None:
    async with course(open_lesson()) as (screen, pilot):
        for key, place in [
            ("right", 1), ("enter", 2), ("left", 1), ("end", 9), ("right", 10), ("right", 11), ("right", 12),
            ("right", 12), ("home", 0), ("left", 0),
        ]:  # fmt: skip
            await pilot.press(key)
            assert screen.index == place, key
        await pilot.press("end")
        assert "10 of 10" in shown(screen) and "for experts" in keys(screen)
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(screen.app, CourseApp) and screen.app.wants_chat


async def test_it_goes_on_where_it_was_left(course: Open) -> None:
    async with course(open_lesson()) as (_, pilot):
        await pilot.press("right", "right", "right", "escape")
    async with course(open_lesson()) as (screen, pilot):
        assert screen.index == 3 and "you left here" in shown(screen)
        await pilot.press("end", "escape")
    async with course(open_lesson()) as (screen, _):
        assert screen.index == 0, "it was finished"


async def test_a_round_plays_phase_by_phase_and_its_neighbours_can_be_seen(course: Open) -> None:
    async with course(open_lesson(), moves=True) as (screen, pilot):
        await pilot.press("right")
        table = screen.query_one(StepTable)
        assert table.scene is not None and table.scene.phase == "emit"
        await pilot.press("space", "space")
        phases = []
        for share in (0.1, 0.3, 0.5, 0.7, 1):
            screen.seconds = share * screen.page.seconds
            screen.draw()
            phases.append(table.scene.phase)
        assert phases == ["block", "draft", "verify", "judge", "emit"]
        before = table.scene.inspection.step.index
        await pilot.press("full_stop", "full_stop", "comma")
        assert table.scene.inspection.step.index == before + 1


async def test_the_tour_plays_from_page_to_page_and_a_key_pauses_it(course: Open) -> None:
    async with course(open_tour(), (80, 24), moves=True) as (screen, pilot):
        assert screen.playing
        await pilot.press("x")
        assert not screen.playing
        for place in range(len(screen.course.pages)):
            assert screen.index == place
            await screen.advance(screen.page.seconds / 2)
            assert screen.query_one(LargeRound).display == (place == 3)
            await screen.advance(screen.page.seconds)
        assert screen.over and "Space again" in keys(screen)
        await pilot.press("space")
        assert screen.index == 0 and screen.playing


async def test_the_chat_opens_the_lesson_too(launch: Launch) -> None:
    async with launch() as driver:
        await driver.ask("/lesson")
        await driver.until(lambda: isinstance(driver.app.screen, CourseScreen))
        await driver.pilot.press("escape")
        await driver.until(lambda: driver.app.screen is driver.screen)
