"""Actions on the conversation: stop, start afresh, ask again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from dflash_tui.core.conversation.slash import Argument

from ..notices import clear_notices
from ..widgets.prompt import Prompt
from .action import Action
from .saving import copy_text

if TYPE_CHECKING:
    from ..screens.chat import ChatScreen

AGAIN_SECONDS = 2.0
"""A second Ctrl+C, or Esc while the models load, leaves within this time."""


def require_idle(screen: ChatScreen) -> None:
    """Raises ``SlashError`` while an answer runs."""
    screen.talk.require_idle()


def stop(screen: ChatScreen, _: Argument) -> None:
    """The innermost thing that can be ended: answer, program, edit, slow motion, loading; else the prompt gets the
    keyboard."""
    waiting = screen.chat.waiting
    if screen.chat.stop():
        if waiting:
            screen.talk.withdraw()
        screen.talk.return_queue()
        screen.drawing.draw_status()
        screen.pump.hurry()
    elif screen.runs.stop() or screen.talk.leave_edit() or screen.viewer.skip():
        pass
    elif screen.chat.reducer.phase == "loading":
        _leave_on_repeat(screen, "Esc again cancels loading and leaves. What was fetched is kept.")
    else:
        clear_notices(screen)
        screen.talk.show_tokens()
        screen.query_one(Prompt).focus()


def interrupt(screen: ChatScreen, argument: Argument) -> None:
    """A selection is copied, what Esc stops is stopped, and twice in a row quits."""
    prompt = screen.query_one(Prompt)
    selected = prompt.selected_text or screen.get_selected_text()
    if selected:
        copy_text(screen, selected, "The selection")
        prompt.move_cursor(prompt.cursor_location)
        screen.clear_selection()
    elif screen.chat.busy:
        stop(screen, argument)
    elif not (screen.runs.stop() or screen.talk.leave_edit()):
        _leave_on_repeat(screen, "Press Ctrl+C again to quit.")


def leave(screen: ChatScreen, _: Argument) -> None:
    """At once, unless more ends with the screen."""
    _leave_on_repeat(screen, screen.source.capabilities.leaving)


def _leave_on_repeat(screen: ChatScreen, notice: str) -> None:
    if not notice or time.monotonic() < screen.quit_until:
        screen.app.exit()
    else:
        screen.quit_until = time.monotonic() + AGAIN_SECONDS
        screen.notify(notice, timeout=AGAIN_SECONDS)


def new_chat(screen: ChatScreen, _: Argument) -> None:
    screen.talk.new()


ACTIONS = (
    Action("stop", "stop the answer and keep what it wrote", stop, "escape", stand_in="interrupt"),
    Action("interrupt", "copy the selection, else stop, else quit", interrupt, "ctrl+c", priority=True),
    Action("new", "start a new chat", new_chat, "ctrl+n", "new"),
    Action("quit", "leave", leave, slash="quit"),
)
