"""Screens for what a desk has to show: each knows its view, and what a choice in it does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import App

from dflash_tui.core.conversation.retry import Retry
from dflash_tui.core.conversation.slash import SlashError
from dflash_tui.core.desk.desk import Desk
from dflash_tui.core.desk.face import View
from dflash_tui.core.desk.views import FilesView, SessionsView, TreeView

if TYPE_CHECKING:
    from dflash_tui.core.conversation.tree import Outlined
    from dflash_tui.core.conversation.turn import Turn
    from dflash_tui.core.sessions.archive import SessionSummary

    from ..screens.tree import Wish

# The first frame needs none of these screens: each is imported when it is asked for.

Attempt = Callable[[Callable[[], object]], None]
"""Calls a function, and shows a notice with the reason when it can't be done."""


def open_view(app: App[Any], desk: Desk, view: View, attempt: Attempt, replay: Callable[[Path], None]) -> None:
    """Show a view on a screen of its own. ``replay`` plays a conversation."""
    if isinstance(view, TreeView):
        app.clear_notifications()  # they would lie over the list
    match view:
        case TreeView():
            _open_tree(app, desk, view, attempt)
        case SessionsView():
            _open_sessions(app, desk, view, attempt, replay)
        case FilesView():
            _open_files(app, view)
        case _:
            desk.face.say("\n".join(view.lines()))


def _open_tree(app: App[Any], desk: Desk, view: TreeView, attempt: Attempt) -> None:
    from ..screens.tree import TreeScreen

    def go_there(row: Outlined[Turn] | None) -> None:
        if row is not None:
            attempt(lambda: desk.go(row.node.number))

    def take(wish: Wish) -> None:
        what, number = wish
        wishes: dict[str, Callable[[], None]] = {
            "edit": lambda: desk.edit(number),
            "retry": lambda: desk.ask_again(Retry(str(number))),
        }
        attempt(wishes[what])

    app.push_screen(TreeScreen(desk.chat.tree, desk.name, take, view.words), go_there)


def _open_sessions(
    app: App[Any], desk: Desk, view: SessionsView, attempt: Attempt, replay: Callable[[Path], None]
) -> None:
    from ..screens.sessions import SessionsScreen

    def open_at(path: Path) -> None:
        desk.resume(path)
        if (match := screen.matches.get(path)) and match.turn:
            desk.visit(match.turn)

    def take(session: SessionSummary | None) -> None:
        if session is not None:
            attempt(lambda: (open_at if asks else replay)(session.path))

    def play(path: Path) -> None:
        attempt(lambda: replay(path))

    asks = desk.source.capabilities.can("ask")
    screen = SessionsScreen(view.here.parent, view.here, view.words, play, asks)
    app.push_screen(screen, take)


def _open_files(app: App[Any], view: FilesView) -> None:
    from dflash_tui.core.conversation.folds import folds

    from ..screens.unfolded import UnfoldedScreen

    folded = folds(view.chat.tree.path)
    if not folded:
        raise SlashError("Nothing is folded: neither a paste nor a file.")
    app.push_screen(UnfoldedScreen(folded, len(folded) - 1 if view.index is None else min(view.index, len(folded) - 1)))
