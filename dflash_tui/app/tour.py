"""Opens the tour by itself, without models: the entrance for ``dflash-chat tour``."""

from __future__ import annotations

from dflash_tui.core.lesson.tour import Tour
from dflash_tui.core.settings.config import ScreenOptions

from .screens.tour import TourScreen
from .themed import ThemedApp


class TourApp(ThemedApp):
    """An application that shows the tour and ends when the tour is left."""

    TITLE = "dflash-chat tour"

    def __init__(self, tour: Tour, theme: str | None = None, screen_options: ScreenOptions | None = None) -> None:
        super().__init__(theme, screen_options)
        self.tour_screen = TourScreen(tour)

    def on_mount(self) -> None:
        self.push_screen(self.tour_screen, lambda _: self.exit())


def run_tour(tour: Tour, theme: str | None, screen_options: ScreenOptions | None = None) -> int:
    """Show the tour until it is left; returns the exit code."""
    app = TourApp(tour, theme, screen_options)
    app.run(mouse=app.screen_options.mouse)
    return app.return_code or 0
