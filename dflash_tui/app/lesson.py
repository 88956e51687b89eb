"""Opens a lesson by itself, without models: the entrance for ``dflash-chat lesson``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dflash_tui.core.export.document import Origin
from dflash_tui.core.lesson.pages import Page
from dflash_tui.core.lesson.parsing import Lesson
from dflash_tui.core.settings.config import ScreenOptions

from .screens.lesson import LessonScreen
from .themed import ThemedApp


class LessonApp(ThemedApp):
    """An application that shows a lesson and ends when the lesson is left."""

    TITLE = "dflash-chat lesson"

    def __init__(
        self,
        lesson: Lesson,
        pages: Sequence[Page],
        origin: Origin,
        out_dir: Path,
        theme: str | None = None,
        screen_options: ScreenOptions | None = None,
    ) -> None:
        super().__init__(theme, screen_options)
        self.lesson_screen = LessonScreen(lesson, pages, origin, out_dir)
        self.wants_chat = False
        """Whether the user left the lesson to go on to the chat."""

    def on_mount(self) -> None:
        self.push_screen(self.lesson_screen, self._leave)

    def _leave(self, wants_chat: bool | None) -> None:
        self.wants_chat = bool(wants_chat)
        self.exit()


def run_lesson(
    lesson: Lesson,
    pages: Sequence[Page],
    origin: Origin,
    out_dir: Path,
    theme: str | None,
    screen_options: ScreenOptions | None = None,
) -> tuple[int, bool]:
    """Show a lesson until it is left; returns the exit code, and whether the chat is wanted next."""
    app = LessonApp(lesson, pages, origin, out_dir, theme, screen_options)
    app.run(mouse=app.screen_options.mouse)
    return app.return_code or 0, app.wants_chat
