"""Actions that open another screen above the chat: the lesson, and recorded runs."""

from __future__ import annotations

from pathlib import Path

from dflash_tui.core.conversation.slash import Argument, SlashError
from dflash_tui.core.desk.command import Command
from dflash_tui.core.traces.bundled import find_trace
from dflash_tui.core.traces.reader import TraceError

from ..chat.screen import ChatScreen
from ..screens.picker import TracePicker


def lesson(screen: ChatScreen, argument: Argument) -> None:
    """Open the lesson that comes with the program, or the one in the file that was named; the chat waits behind it."""
    from dflash_tui.core.lesson.bundled import open_lesson
    from dflash_tui.core.lesson.parsing import LessonError

    from ..screens.lesson import LessonScreen

    try:
        read, pages, origin = open_lesson(Path(argument.text).expanduser() if argument.text else None)
    except LessonError as error:
        raise SlashError(str(error)) from None
    screen.app.push_screen(LessonScreen(read, pages, origin, screen.desk.out_dir))


def replay(screen: ChatScreen, argument: Argument) -> None:
    """``/replay`` chooses among the bundled traces; ``/replay NAME|FILE`` plays that one. The chat waits below."""
    if screen.chat.busy:
        raise SlashError("An answer is on its way. Esc stops it first.")
    if not argument.text:
        screen.app.push_screen(TracePicker(), screen.open_replay)
        return
    try:
        screen.open_replay(find_trace(argument.text))
    except TraceError as error:
        raise SlashError(f"{error} {error.hint}") from None


COMMANDS = {
    "export": (
        Command("lesson", "Lesson", "a guided tour over a recorded run", lesson, slash="lesson", takes="[file]"),
    ),
    "save": (
        Command(
            "replay",
            "Watch a recording",
            "watch a recorded run",
            replay,
            keys="f7,alt+p",
            slash="replay",
            takes="[name]",
            priority=True,
        ),
    ),
}
