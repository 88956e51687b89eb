"""The lesson and the tour at every size: each page has its view, and its text can be read to the end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dflash_tui.core.lesson.course import Course
from dflash_tui.core.lesson.lesson import open_lesson
from dflash_tui.core.lesson.tour import open_tour
from tests.proofs.app.test_course import Open, course, keys, shown

__all__ = ["course"]


@pytest.mark.parametrize("what", [open_lesson, open_tour])
@pytest.mark.parametrize("size", [(200, 60), (120, 36), (80, 24), (60, 18)])
async def test_every_page_shows_its_view_and_its_text_to_the_end(
    course: Open, what: Callable[[], Course], size: tuple[int, int]
) -> None:
    async with course(what(), size) as (screen, pilot):
        for place in range(len(screen.course.pages) + len(screen.course.behind)):
            await pilot.pause()
            assert screen.index == place
            assert screen.page.title.split()[-1] in shown(screen)
            view = screen.query_one("#course-view")
            if screen.page.view is not None:
                assert view.region.height >= 3 and view.region.bottom <= size[1] - 1
                lines = shown(screen).split("\n")[view.region.y : view.region.bottom]
                assert len("".join(lines).strip()) > 20, screen.page.title
            text = screen.query_one("#course-text")
            text.scroll_to(y=text.max_scroll_y, animate=False)
            await pilot.pause()
            assert screen.page.text.strip(" .").split()[-1].strip("*|.") in shown(screen), screen.page.title
            assert "leave" in keys(screen)
            await pilot.press("right")
