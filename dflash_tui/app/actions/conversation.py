"""Actions that end something: the answer, a program, an edit, the program itself."""

from __future__ import annotations

import time

from dflash_tui.core.conversation.slash import Argument
from dflash_tui.core.desk.command import Command
from dflash_tui.core.text.fences import CodeBlock

from ..chat.screen import ChatScreen
from ..notices import clear_notices

AGAIN_SECONDS = 2.0
"""Seconds within which a second Ctrl+C, or Esc while the models load, leaves the program."""


def stop(screen: ChatScreen, _: Argument) -> None:
    """End the first of these that goes on: answer, edit, slow motion, loading; else give the prompt the
    keyboard, and where it has that, leave a replay for the chat below."""
    if screen.desk.stop():
        screen.draw_status()
        screen.pump.hurry()
    elif screen.leave_edit() or screen.viewer.skip():
        pass
    elif screen.chat.reducer.phase == "loading":
        _leave_on_repeat(screen, "Esc again cancels loading and leaves. What was fetched is kept.")
    else:
        clear_notices(screen)
        screen.conversation.show_tokens()
        if screen.prompt.has_focus:
            screen.leave_replay()
        screen.prompt.focus()


def interrupt(screen: ChatScreen, argument: Argument) -> None:
    """What Ctrl+C does: copy a selection, else stop what Esc stops, else empty the prompt, and quit
    when pressed twice in a row."""
    prompt = screen.prompt
    selected = prompt.selected_text or screen.get_selected_text()
    if selected:
        screen.copy("The selection", CodeBlock(1, "", "", "copied.txt", selected, closed=True))
        prompt.move_cursor(prompt.cursor_location)
        screen.clear_selection()
    elif screen.desk.stop():
        screen.draw_status()
        screen.pump.hurry()
    elif screen.leave_edit():
        pass
    elif prompt.text:
        prompt.clear()
        screen.notify("Alt+Z brings the text back.", timeout=AGAIN_SECONDS)
    else:
        _leave_on_repeat(screen, "Press Ctrl+C again to quit.")


def leave(screen: ChatScreen, _: Argument) -> None:
    """Leave the program: at once, or when asked again where more than the screen would end."""
    _leave_on_repeat(screen, screen.desk.source.capabilities.leaving)


def _leave_on_repeat(screen: ChatScreen, notice: str) -> None:
    if not notice or time.monotonic() < screen.quit_until:
        screen.app.exit()
    else:
        screen.quit_until = time.monotonic() + AGAIN_SECONDS
        screen.notify(notice, timeout=AGAIN_SECONDS)


COMMANDS = {
    "new": (
        Command("stop", "Stop the answer", "stop the answer and keep what it wrote", stop, "escape"),
        Command(
            "interrupt",
            "Copy, stop or quit",
            "copy the selection, else stop, else empty the prompt, else quit",
            interrupt,
            "ctrl+c",
            priority=True,
        ),
    ),
    "retry": (Command("quit", "Quit", "leave", leave, slash="quit"),),
}
