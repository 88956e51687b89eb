"""Actions that compare and present: the race, the lesson, exports, and recorded runs."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dflash_tui.core.conversation.slash import Argument, SlashError
from dflash_tui.core.export.document import origin_of
from dflash_tui.core.export.formats import FORMATS, render
from dflash_tui.core.export.of_chat import chat_document
from dflash_tui.core.failures import Failure
from dflash_tui.core.files.saving import save_text
from dflash_tui.core.traces.bundled import find_trace
from dflash_tui.core.traces.format import SUFFIX
from dflash_tui.core.traces.reader import TraceError
from dflash_tui.core.traces.writer import write_conversation

from ..notices import tell_saved
from ..screens.picker import TracePicker
from .action import Action

if TYPE_CHECKING:
    from dflash_tui.core.race.race import RaceResult

    from ..screens.chat import ChatScreen

# Race and lesson are imported when they are asked for: the first frame needs neither.

LAST = "last"
EXPORT_TAKES = f"html|svg|cast|json [{LAST}] [name]"
AGAINST = "against"


def race(screen: ChatScreen, argument: Argument) -> None:
    """The target alone against its drafter, or what answers here against a server."""
    from dflash_tui.core.race.in_chat import RACE_RUNS, own_lanes, question_of
    from dflash_tui.core.race.race import Race

    from ..screens.race import RaceScreen

    screen.talk.require_idle()
    if argument.text.split(" ", 1)[0] == AGAINST:
        _race_against(screen, argument.text.removeprefix(AGAINST).strip())
        return
    screen.talk.require("speculation")
    ready = screen.chat.reducer.ready
    lanes = own_lanes(screen.chat.settings, ready, screen.source.capabilities.can("draft_by"))
    messages = question_of(screen.chat, argument.text)

    def create() -> Race:
        return Race(messages, lanes, RACE_RUNS, [screen.source.send], screen.gpu.joules)

    def finish(result: RaceResult | None) -> None:
        if result is not None and result.plain_ms is not None:
            screen.chat.reducer.take_race(result.plain_ms)
            screen.drawing.draw_gauges()

    moves = screen.viewer.motion.moves
    screen.app.push_screen(RaceScreen(create, screen.queue, origin_of(ready), screen.out_dir, moves=moves), finish)


def _race_against(screen: ChatScreen, argument: str) -> None:
    """``argument``: a server's URL or name, and maybe a question."""
    from dflash_tui.core.race.in_chat import RACE_RUNS, question_of
    from dflash_tui.core.race.race import Race, kind_of, lanes_against
    from dflash_tui.core.race.report import host_of

    from ..opponent import Opponent
    from ..screens.race import RaceScreen

    ready, (against, _, question) = screen.chat.reducer.ready, argument.partition(" ")
    if ready is None:
        raise SlashError("The race can begin when this chat is ready to answer.")
    if not against or screen.begin.others is None:
        raise SlashError("Say against which server: /race against http://host:8000, or a name of [servers].")
    try:
        opponent = Opponent(screen.begin.others(against))
    except Failure as failure:
        raise SlashError(f"{failure} {failure.hint}") from None
    messages, settings = question_of(screen.chat, question.strip()), screen.chat.settings
    own = [host_of(ready.server)] if ready.server else []
    lanes = lanes_against(
        settings, [] if own else [settings.block_size], [*own, host_of(against)], kind_of(ready.drafter)
    )

    def create() -> Race:
        made = Race(messages, lanes, RACE_RUNS, [screen.source.send, opponent.send])
        made.sides = (ready,)
        return made

    moves = screen.viewer.motion.moves
    screen.app.push_screen(RaceScreen(create, screen.queue, origin_of(ready), screen.out_dir, opponent, moves))


def export(screen: ChatScreen, argument: Argument) -> None:
    """Write the answers of this chat, as they were decoded, to a file for others."""
    words = argument.text.split()
    wanted = next((each for each in FORMATS if words and each == words[0]), None)
    if wanted is None:
        raise argument.wrong()
    last = words[1:2] == [LAST]
    document = chat_document(screen.chat, last=last)
    name = " ".join(words[1 + last :]) or f"{'answer' if len(document.answers) == 1 else 'chat'}.{wanted}"
    content = render(document, wanted)
    tell_saved(screen, lambda: save_text(content, screen.out_dir, name))


def lesson(screen: ChatScreen, argument: Argument) -> None:
    """The lesson that comes with the program, or a file; the chat waits behind it."""
    from dflash_tui.core.lesson.bundled import open_lesson
    from dflash_tui.core.lesson.parsing import LessonError

    from ..screens.lesson import LessonScreen

    try:
        read, pages, origin = open_lesson(Path(argument.text).expanduser() if argument.text else None)
    except LessonError as error:
        raise SlashError(str(error)) from None
    screen.app.push_screen(LessonScreen(read, pages, origin, screen.out_dir))


def write_trace(screen: ChatScreen, argument: Argument) -> None:
    """``/trace`` and ``/trace FILE``: everything since the program, or the new chat, began."""
    reducer = screen.chat.reducer
    if screen.chat.busy or not screen.chat.turns:
        raise SlashError("There is no finished answer to write a trace of yet.")
    stamp = datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
    path = Path(argument.text).expanduser() if argument.text else screen.out_dir / f"{stamp}{SUFFIX}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_conversation(path, reducer.ready, screen.chat.turns)
    except FileExistsError:
        raise SlashError(f"{path} exists already, and traces are never overwritten. Choose another name.") from None
    except OSError as error:
        raise SlashError(f"The trace could not be written: {error.strerror or error}") from None
    screen.notify(f"{path.resolve()}\nWatch it: dflash-chat replay FILE", title="Trace", timeout=6, markup=False)


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


ACTIONS = (
    Action(
        "race",
        "race the target alone against DFlash, or what answers here against a server",
        race,
        "f6,alt+r",
        "race",
        "[against URL] [question]",
        priority=True,
    ),
    Action("lesson", "a guided tour over a recorded run", lesson, slash="lesson", takes="[file]"),
    Action("export", "the answers as a page, picture, recording or data", export, slash="export", takes=EXPORT_TAKES),
    Action("trace", "write a trace of this chat, to replay it", write_trace, slash="trace", takes="[file]"),
    Action("replay", "watch a recorded run", replay, keys="f7,alt+p", slash="replay", takes="[name]", priority=True),
)
