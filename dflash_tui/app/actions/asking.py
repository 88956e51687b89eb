"""Actions on the conversation: stop, start afresh, ask again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from dflash_tui.core.reducer import Span
from dflash_tui.core.slash import Argument, SlashError

from ..widgets.prompt import Prompt
from ..widgets.token_log import TokenLog
from .action import Action

if TYPE_CHECKING:
    from ..screens.chat import ChatScreen

QUIT_SECONDS = 2.0
"""A second Ctrl+C within this time quits."""


def _require_idle(screen: ChatScreen) -> None:
    if screen.chat.busy:
        raise SlashError("An answer is on its way. Esc stops it first.")


def stop(screen: ChatScreen, _: Argument) -> None:
    waiting = screen.chat.waiting
    if screen.chat.stop():
        if waiting:
            screen.query_one(TokenLog).append([Span("⏹ not asked\n\n", "note")])
        screen.draw_status()
    else:
        screen.query_one(Prompt).focus()


def interrupt(screen: ChatScreen, argument: Argument) -> None:
    """A selection is copied, an answer is stopped, and twice in a row quits."""
    prompt = screen.query_one(Prompt)
    selected = prompt.selected_text or screen.get_selected_text()
    if selected:
        screen.app.copy_to_clipboard(selected)
        prompt.move_cursor(prompt.cursor_location)
        screen.clear_selection()
        screen.notify("Selection sent to the terminal's clipboard.", timeout=2)
    elif screen.chat.busy:
        stop(screen, argument)
    elif time.monotonic() < screen.quit_until:
        screen.app.exit()
    else:
        screen.quit_until = time.monotonic() + QUIT_SECONDS
        screen.notify("Press Ctrl+C again to quit.", timeout=QUIT_SECONDS)


def new_chat(screen: ChatScreen, _: Argument) -> None:
    _require_idle(screen)
    screen.chat.new()
    screen.queue.renew_log(screen.chat.reducer.ready)
    screen.query_one(TokenLog).clear()
    screen.draw_gauges()
    screen.draw_status()


def _take_back(screen: ChatScreen) -> str:
    """The newest question, which is no longer part of the conversation."""
    _require_idle(screen)
    exchange = screen.chat.take_back()
    if exchange is None:
        raise SlashError("There is no question to take back yet.")
    screen.queue.log.take_back(exchange.turn)
    screen.query_one(TokenLog).append([Span("↺ taken back\n\n", "note")])
    return exchange.question


def retry(screen: ChatScreen, _: Argument) -> None:
    """The same seed would give the same answer, so the next one is used; greedy decoding has none."""
    question = _take_back(screen)
    if screen.chat.settings.temperature > 0:
        screen.chat.reseed(screen.chat.settings.seed + 1)
    else:
        screen.notify("At temperature 0 the same question has the same answer; /temp 0.7 lets it vary.", timeout=6)
    screen.ask(question)


def edit(screen: ChatScreen, _: Argument) -> None:
    screen.query_one(Prompt).insert(_take_back(screen))


def leave(screen: ChatScreen, _: Argument) -> None:
    screen.app.exit()


ACTIONS = (
    Action("stop", "stop the answer and keep what it wrote", stop, "escape"),
    Action("interrupt", "copy the selection, else stop, else quit", interrupt, "ctrl+c", priority=True),
    Action("new", "start a new chat", new_chat, "ctrl+n", "new"),
    Action("retry", "take the newest answer back and ask again", retry, slash="retry"),
    Action("edit", "take the newest question back into the prompt", edit, slash="edit"),
    Action("quit", "leave", leave, slash="quit"),
)
