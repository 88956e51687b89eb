"""The lesson's screen: keys only, every page readable, and it goes on where it was left."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from math import ceil
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from dflash_tui.app.lesson import LessonApp
from dflash_tui.app.screens.lesson import LessonScreen
from dflash_tui.app.widgets.lesson_chart import histogram_lines
from dflash_tui.app.widgets.rounds.step_table import StepTable
from dflash_tui.app.widgets.token_log import TokenLog
from dflash_tui.core.figures.labels import TOKENS_PER_ROUND
from dflash_tui.core.lesson.bundled import open_lesson
from dflash_tui.core.settings.config import ScreenOptions
from tests.app.conftest import Launch

SIZES = [(200, 60), (120, 36), (80, 24), (60, 18)]
Open = Callable[..., AbstractAsyncContextManager[tuple[LessonScreen, Pilot[None]]]]


@pytest.fixture
def lesson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """``async with lesson(size) as (screen, pilot)``; places are kept for the length of a test."""
    monkeypatch.setenv("DFLASH_CHAT_STATE", str(tmp_path / "state"))

    @asynccontextmanager
    async def opened(
        size: tuple[int, int] = (120, 36), moves: bool = True
    ) -> AsyncIterator[tuple[LessonScreen, Pilot[None]]]:
        app = LessonApp(*open_lesson(None), tmp_path / "out", screen_options=ScreenOptions(reduced_motion=not moves))
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            yield app.lesson_screen, pilot

    return opened


def shown(screen: LessonScreen) -> str:
    """The words of the screen as they are drawn."""
    return "\n".join(strip.text for strip in screen._compositor.render_strips())


def figure_text(screen: LessonScreen) -> str:
    figure = screen.query_one("#lesson-figure")
    lines = shown(screen).split("\n")
    return "\n".join(lines[figure.region.y : figure.region.bottom])


async def test_every_page_shows_its_figure_and_its_text_to_the_end_at_every_size(lesson: Open) -> None:
    async with lesson(SIZES[0], moves=False) as (screen, pilot):
        for size in SIZES:
            await pilot.resize_terminal(*size)
            await pilot.press("home")
            for place, page in enumerate(screen.pages):
                await pilot.pause()
                assert screen.place == place
                words = shown(screen)
                assert page.title in words and f"{place + 1} of {len(screen.pages)}" in words
                assert page.text.split()[0] in words
                fits(screen, size)
                text = screen.query_one("#lesson-text")
                text.scroll_to(y=text.max_scroll_y, animate=False)
                await pilot.pause()
                assert page.text.split()[-1] in shown(screen), page.title
                await pilot.press("right")


def fits(screen: LessonScreen, size: tuple[int, int]) -> None:
    """A figure fills its part of the screen; on a small one bars are long enough to compare, every column of a
    histogram is there, and no word is cut in two."""
    page = screen.pages[screen.place]
    keys = screen.query_one("#lesson-keys", Static)
    if size == (60, 18):
        assert str(keys.render()).count(" · ") >= 2 and len(str(keys.render())) <= keys.content_size.width
    if page.figure is None:
        return
    figure, region = figure_text(screen), screen.query_one("#lesson-figure").region
    assert len(figure.strip()) > 20 and region.height >= 4, page.title
    if size[0] >= 120:
        assert region.area >= size[0] * size[1] * 0.3, page.title
    elif size == (60, 18) and page.figure.kind == "race":
        lanes = [line for line in figure.splitlines() if "DFlash" in line]
        assert lanes and all(line.count("█") >= 3 and "×" in line for line in lanes) and "…" not in figure
    elif size == (60, 18) and page.figure.kind == "histogram":
        assert "…" not in figure
        for answer in page.figure.answers:
            assert f"{answer.statistics.mean_acceptance_length:.2f} {TOKENS_PER_ROUND.name}" in figure


def test_histograms_beside_each_other_have_one_scale() -> None:
    pages = open_lesson(None)[1]
    figure = next(page.figure for page in pages if page.figure and page.figure.kind == "histogram")
    counts = [answer.statistics.acceptance_histogram for answer in figure.answers]
    _, *rows, axis, _ = [line.plain for line in histogram_lines(figure.answers, 120, 8)]
    one, other = axis[:60].split(), axis[60:].split()
    assert one == other and one[-1] == str(max(map(len, counts)) - 1)
    shares = [max(row) / sum(row) for row in counts]
    heights = [sum(any(row[start : start + 60].strip()) for row in rows) for start in (0, 60)]
    assert max(heights) == len(rows)
    assert heights[shares.index(min(shares))] == ceil(len(rows) * min(shares) / max(shares))


async def test_keys_move_between_pages(lesson: Open) -> None:
    async with lesson() as (screen, pilot):
        for key, place in [
            ("right", 1),
            ("enter", 2),
            ("left", 1),
            ("end", len(screen.pages) - 1),
            ("right", len(screen.pages) - 1),
            ("home", 0),
            ("left", 0),
        ]:
            await pilot.press(key)
            assert screen.place == place, key


async def test_it_goes_on_where_it_was_left(lesson: Open) -> None:
    async with lesson() as (screen, pilot):
        await pilot.press("right", "right", "right", "escape")
    async with lesson() as (screen, pilot):
        assert screen.place == 3 and "you left here" in shown(screen)
        await pilot.press("home")
        await pilot.pause()
        assert "you left here" not in shown(screen)
    async with lesson() as (screen, _):
        assert screen.place == 0


async def test_a_round_plays_phase_by_phase(lesson: Open) -> None:
    async with lesson() as (screen, pilot):
        await pilot.press("right")
        table = screen.query_one(StepTable)
        assert table.scene is not None and table.scene.phase == "emit"
        phases = []
        for _ in range(5):
            await pilot.press("space")
            phases.append(table.scene.phase)
        assert phases == ["block", "draft", "verify", "judge", "emit"]
        before = table.scene.inspection.step.index
        await pilot.press("full_stop", "full_stop", "comma")
        assert table.scene.inspection.step.index == before + 1


async def test_a_race_runs_to_its_end_and_again(lesson: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("dflash_tui.app.screens.lesson.monotonic", lambda: now)
    async with lesson(moves=False) as (screen, pilot):
        place = next(place for place, page in enumerate(screen.pages) if page.figure and page.figure.kind == "race")
        screen.action_go(place)
        figure = screen.figure
        assert figure is not None
        for _ in range(2):
            await pilot.press("space")
            assert screen._clock is not None and not screen._clock.over
            result = figure.race()
            clock = screen._clock
            now += 0.5 * clock.length / clock.pace
            await pilot.press("space")
            half = clock.seconds
            assert clock.length > half > 0 and "×" not in figure_text(screen), "what came of it is told last"
            now += 100
            await pilot.pause(0.1)
            assert clock.seconds == half, "it was paused"
            await pilot.press("space")
            now += 0.6 * clock.length / clock.pace
            while screen._clock is not None:
                await pilot.pause(0.02)
            chart = str(screen.query_one("#lesson-chart", Static).render())
            assert all(f"{result.speed_up(lane):.2f}×" in chart for lane in result.lanes)


async def test_the_chat_opens_it_too(launch: Launch) -> None:
    async with launch() as driver:
        await driver.ask("/lesson")
        await driver.until(lambda: isinstance(driver.app.screen, LessonScreen))
        await driver.pilot.press("escape")
        await driver.until(lambda: driver.app.screen is driver.screen)


async def test_a_broken_lesson_is_told_in_the_chat(launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("nothing")
    async with launch(notices=True) as driver:
        await driver.ask(f"/lesson {tmp_path / 'mine.md'}")
        await driver.until(lambda: "line 1" in driver.notices())
        assert driver.app.screen is driver.screen


async def test_the_first_page_moves_and_the_last_opens_the_chat(lesson: Open) -> None:
    async with lesson() as (screen, pilot):
        log, whole = screen.query_one(TokenLog), screen.pages[0].figure
        assert whole is not None and len(log.text) < len(whole.answers[0].text) / 2
        await pilot.press("space")
        stood = log.text
        await pilot.pause(0.2)
        assert log.text == stood
        await pilot.press("end", "enter")
        app = screen.app
        assert isinstance(app, LessonApp)
        await pilot.pause()
        assert app.wants_chat
