"""What the user wants of every screen: an application that knows it."""

from __future__ import annotations

from typing import cast

from textual.app import App
from textual.dom import DOMNode

from dflash_tui.core.settings.config import ScreenOptions


class OptionsApp(App[None]):
    """Its parts ask :func:`options_of`."""

    screen_options: ScreenOptions


def options_of(part: DOMNode) -> ScreenOptions:
    """The options of the application that a part is in."""
    return cast(OptionsApp, part.app).screen_options
