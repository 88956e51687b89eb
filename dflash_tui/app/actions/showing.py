"""Actions that open another screen above the chat: the lesson, and recorded runs."""

from __future__ import annotations

from dflash_tui.core.conversation.slash import Argument, SlashError
from dflash_tui.core.desk.command import Command
from dflash_tui.core.traces.bundled import find_trace
from dflash_tui.core.traces.reader import TraceError

from ..chat.screen import ChatScreen
from ..screens.picker import TracePicker


def lesson(screen: ChatScreen, _: Argument) -> None:
    """Open the lesson; the chat waits behind it."""
    from dflash_tui.core.lesson.lesson import open_lesson

    from ..screens.course import CourseScreen

    screen.app.push_screen(CourseScreen(open_lesson(), screen.desk.out_dir))


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
        Command("lesson", "Lesson", "how it works, in five minutes, over a recorded run", lesson, slash="lesson"),
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
