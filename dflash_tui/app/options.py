"""The application that knows what the user wants of every screen: motion, ASCII, keys."""

from __future__ import annotations

from typing import cast

from textual.app import App
from textual.dom import DOMNode

from dflash_tui.core.settings.config import ScreenOptions


class OptionsApp(App[None]):
    """An application with the user's ``screen_options``; its widgets get them from :func:`options_of`."""

    screen_options: ScreenOptions


def options_of(part: DOMNode) -> ScreenOptions:
    """The user's options, which the application of ``part`` keeps."""
    return cast(OptionsApp, part.app).screen_options
