"""Actions on recorded runs: write one down, watch one."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dflash_tui.core.conversation.slash import Argument, SlashError
from dflash_tui.core.traces.bundled import find_trace
from dflash_tui.core.traces.format import SUFFIX
from dflash_tui.core.traces.reader import TraceError
from dflash_tui.core.traces.writer import write_conversation

from ..screens.picker import TracePicker
from .action import Action

if TYPE_CHECKING:
    from ..screens.chat import ChatScreen


def write_trace(screen: ChatScreen, argument: Argument) -> None:
    """``/trace`` and ``/trace FILE``: everything since the program, or the new chat, began."""
    reducer = screen.chat.reducer
    if screen.chat.busy or not reducer.turns:
        raise SlashError("There is no finished answer to write a trace of yet.")
    stamp = datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
    path = Path(argument.text).expanduser() if argument.text else screen.out_dir / f"{stamp}{SUFFIX}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_conversation(path, reducer.ready, reducer.turns)
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
    Action("trace", "write a trace of this chat, to replay it", write_trace, slash="trace", takes="[file]"),
    Action("replay", "watch a recorded run", replay, keys="f7,alt+p", slash="replay", takes="[name]", priority=True),
)
