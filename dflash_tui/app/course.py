"""Opens the lesson or the tour by itself, without models."""

from __future__ import annotations

from pathlib import Path

from dflash_tui.core.lesson.course import Course
from dflash_tui.core.settings.config import ScreenOptions

from .screens.course import CourseScreen
from .themed import ThemedApp


class CourseApp(ThemedApp):
    """An application that shows a course and ends when that is left."""

    def __init__(
        self, course: Course, out_dir: Path, theme: str | None = None, screen_options: ScreenOptions | None = None
    ) -> None:
        super().__init__(theme, screen_options)
        self.title = course.title
        self.course_screen = CourseScreen(course, out_dir)
        self.wants_chat = False
        """Whether the user left the course to go on to the chat."""

    def on_mount(self) -> None:
        self.push_screen(self.course_screen, self._leave)

    def _leave(self, wants_chat: bool | None) -> None:
        self.wants_chat = bool(wants_chat)
        self.exit()


def run_course(
    course: Course, out_dir: Path, theme: str | None, screen_options: ScreenOptions | None = None
) -> tuple[int, bool]:
    """Show a course until it is left; returns the exit code, and whether the chat is wanted next."""
    app = CourseApp(course, out_dir, theme, screen_options)
    app.run(mouse=app.screen_options.mouse)
    return app.return_code or 0, app.wants_chat
