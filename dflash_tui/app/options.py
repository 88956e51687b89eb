"""What parts of a screen ask of the application around them: the user's wishes, and how its terminal keeps up."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from textual.app import App
from textual.dom import DOMNode
from textual.geometry import Size

from dflash_tui.core.settings.config import ScreenOptions


class OptionsApp(App[None]):
    """An application with the user's ``screen_options``; its widgets get them from :func:`options_of`."""

    screen_options: ScreenOptions
    backed_up: Callable[[], bool]
    """Whether the terminal has still to take what was written; whoever writes to it says."""
    overtaken: Callable[[Size], bool] = staticmethod(lambda size: False)
    """Whether the terminal has another size by now, of which an event is to come; whoever writes to it says."""


def options_of(node: DOMNode) -> ScreenOptions:
    """The user's options, which the application of ``node`` keeps."""
    return cast(OptionsApp, node.app).screen_options


def backed_up(node: DOMNode) -> bool:
    """Whether the terminal that shows ``node`` has still to take what was written."""
    return cast(OptionsApp, node.app).backed_up()


def overtaken(node: DOMNode, size: Size) -> bool:
    """Whether the terminal that shows ``node`` has another size than this by now: to be laid out for it is in vain."""
    return cast(OptionsApp, node.app).overtaken(size)
