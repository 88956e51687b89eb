"""Notices that a screen shows for a moment: that something was saved, or could not be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.content import Content
from textual.screen import Screen

from dflash_tui.core.failures import Failure


def link(path: Path) -> Content:
    """A path that opens when it is clicked, in terminals that know links."""
    whole = path.resolve()
    return Content.styled(str(whole), f"link='{whole.as_uri()}'")


def stand_above(screen: Screen[Any], below: str) -> None:
    """Notices get rows of their own, above a part of the screen: where Textual puts them they lie over its text."""
    for rack in screen.query("ToastRack"):  # none where an app shows no notices
        screen.move_child(rack, before=screen.query_one(below))


def clear_notices(screen: Screen[Any]) -> None:
    screen.app.clear_notifications()
    screen.query("ToastHolder").remove()  # Textual itself would leave the rows they stood on


def tell_saved(screen: Screen[Any], save: Callable[[], Path]) -> None:
    """Call ``save`` and show a notice with the path it returns, or with why nothing was saved."""
    try:
        path = save()
    except Failure as failure:
        tell_not_saved(screen, failure)
    else:
        screen.notify(link(path).markup, title="Saved", timeout=6)


def tell_not_saved(screen: Screen[Any], failure: Failure) -> None:
    screen.notify(f"{failure}\n{failure.hint}", title="Not saved", severity="error", timeout=10, markup=False)
