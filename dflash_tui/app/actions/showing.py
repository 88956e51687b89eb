"""Actions that open another screen above the chat: the lesson, and recorded runs."""

from __future__ import annotations

from dflash_tui.core.conversation.slash import Argument, SlashError
from dflash_tui.core.desk.command import Command
from dflash_tui.core.replay.bundled import find_recording, latest_recording
from dflash_tui.core.replay.recording import RecordingError

from ..chat.screen import ChatScreen
from ..screens.picker import RecordingPicker

LAST = "last"


def lesson(screen: ChatScreen, _: Argument) -> None:
    """Open the lesson; the chat waits behind it."""
    from dflash_tui.core.lesson.lesson import open_lesson

    from ..screens.course import CourseScreen

    screen.app.push_screen(CourseScreen(open_lesson(), screen.desk.out_dir))


def replay(screen: ChatScreen, argument: Argument) -> None:
    """``/replay`` chooses among the bundled recordings and ``/replay last`` plays the latest conversation; so does
    ``/replay NAME|FILE`` any of them, or a file. The chat waits below."""
    if not argument.text:
        screen.app.push_screen(RecordingPicker(), lambda path: screen.attempt(lambda: screen.open_replay(path)))
        return
    try:
        screen.open_replay(latest_recording() if argument.text == LAST else find_recording(argument.text))
    except RecordingError as error:
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
            takes="[name|last]",
            priority=True,
        ),
    ),
}
