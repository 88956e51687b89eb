"""The conversations on this machine: find one by what was said in it, resume, replay, name it, delete it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from pathlib import Path
from time import monotonic
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static
from textual.worker import get_current_worker

from dflash_tui.core.conversation.models import short_name
from dflash_tui.core.desk.face import AskOption
from dflash_tui.core.sessions.archive import ArchiveError, SessionSummary, delete_session, survey
from dflash_tui.core.sessions.sessions import append_title
from dflash_tui.core.text.counted import counted
from dflash_tui.core.text.harmless import sanitise

from .asking import AskScreen
from .once import DismissOnceScreen
from .picker import BESIDE, PickerScreen

PAUSE = 0.1
"""Seconds between two looks at what was read by then."""
UNREADABLE = 3
"""Of how many files that can't be read a notice says why."""
NAME_WIDTH = 28
"""Cells that a name has before facts stand beside it."""
LEAST_CONTEXT = 12
"""Cells of what was said around the words, from which on it is shown."""
HERE = " · this chat has the words, too: /tree"
"""Behind the title where the conversation on the screen was found as well."""


class SessionsScreen(PickerScreen[SessionSummary]):
    """Lists the conversations on this machine, or those in which words were said, which it reads while it is on the
    screen. Gives the one to resume, or None."""

    HEAD = "conversations"
    EMPTY = "no other conversation yet"
    KEYS = "Enter resumes · F7 replays · F2 renames · Ctrl+D deletes · Esc closes"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f7", "replay", "Replay", show=False, priority=True),
        Binding("f2", "rename", "Rename", show=False, priority=True),
        Binding("ctrl+d,delete", "delete", "Delete", show=False, priority=True),
    ]

    def __init__(
        self,
        directory: Path,
        open_now: Path,
        words: str = "",
        replay: Callable[[Path], None] = lambda path: None,
        resumes: bool = True,
    ) -> None:
        """``open_now`` is the file of the conversation on the screen, which can't be resumed or deleted from here;
        ``replay`` plays one as it was decoded, when this screen is gone. Without ``resumes`` nothing can be asked, and
        that is what whoever opens this screen does with the one that it gives."""
        super().__init__(words)
        if not resumes:
            self.KEYS = self.KEYS.replace("resumes · F7 replays", "replays", 1)
        from dflash_tui.core.sessions import search  # not before the first frame

        self._directory, self._search = directory, search.Search(directory)
        self._around, self._folded = search.around, search.folded
        self.matches: dict[Path, search.Match] = {}
        """By conversation, where the words were said."""
        self._replay = replay
        self._open_now = open_now
        self._sessions: list[SessionSummary] | None = None

    def on_mount(self) -> None:
        """Called beside the list's own."""
        self.run_worker(self._read, thread=True, exit_on_error=False)

    def _read(self) -> None:
        worker, told = get_current_worker(), 0.0
        for left in self._search.read():
            if worker.is_cancelled:
                return
            if not left or monotonic() - told > PAUSE:
                self.app.call_from_thread(partial(self._tell, left))
                told = monotonic()

    def _tell(self, left: int) -> None:
        """Called while conversations are read, of which ``left`` are still to come."""
        if self.is_active:
            if self.words:
                self.refill()
            still = f"still to be read: {counted(left, 'conversation')}" if left else ""
            self.query_one(Vertical).border_subtitle = still

    def find(self, words: str) -> Iterable[SessionSummary]:
        if self._sessions is None:
            sessions, unreadable = survey(self._directory)
            self._sessions = [session for session in sessions if session.path != self._open_now]
            if unreadable:
                self.notify("\n".join(unreadable[:UNREADABLE]), timeout=8, markup=False)
        self.matches = self._search.known(words)
        here = self.matches.get(self._open_now)
        self.query_one(Vertical).border_title = f"{self.HEAD}{HERE if here and here.turn else ''}"
        return [session for session in self._sessions if session.matches(words) or session.path in self.matches]

    def describe(self, entry: SessionSummary) -> Content:
        when = datetime.fromtimestamp(entry.changed).strftime("%d %b %H:%M  ")
        room, name = self.line_width - len(when), sanitise(entry.name)
        if (context := self._said_around(entry, room - NAME_WIDTH - 2)) is not None:
            return Content.assemble((when, BESIDE), set_cell_size(name, NAME_WIDTH), (f"  {context}", BESIDE))
        questions = f"  {counted(len(entry.questions), 'question')}"
        whole = f"{questions} · {short_name(entry.target or 'unknown model')}"
        facts = next((each for each in (whole, questions) if room - cell_len(each) >= NAME_WIDTH), "")
        return Content.assemble((when, BESIDE), set_cell_size(name, max(room - cell_len(facts), 10)), (facts, BESIDE))

    def _said_around(self, entry: SessionSummary, room: int) -> str | None:
        """What was said around the words, where they don't all stand in the name."""
        match, name = self.matches.get(entry.path), entry.name.casefold()
        in_name = all(word in name for word in self._folded(self.words))
        if match is None or not match.turn or room < LEAST_CONTEXT or in_name:
            return None
        line = sanitise(self._around(match.text, self.words, room))
        return set_cell_size(line, min(cell_len(line), room))

    def action_replay(self) -> None:
        if (session := self.chosen) is not None:
            self.dismiss(None)
            self.app.call_later(self._replay, session.path)

    def action_rename(self) -> None:
        if (session := self.chosen) is not None:
            self.app.push_screen(RenameScreen(session.name), lambda title: self._rename(session, title))

    def _rename(self, session: SessionSummary, title: str | None) -> None:
        if title is None:
            return
        try:
            append_title(session.path, title)
        except OSError as error:
            self.notify(f"It was not renamed: {error.strerror or error}.", severity="error", markup=False)
        self._look_again()

    def action_delete(self) -> None:
        if (session := self.chosen) is not None:
            ways = (AskOption("n", "no", "no; it is kept"), AskOption("y", "yes", "delete it"))
            screen = AskScreen("delete this?", "Delete this conversation for ever?", ways, session.name)
            self.app.push_screen(screen, lambda way: self._delete(session, way == "yes"))

    def _delete(self, session: SessionSummary, yes: bool) -> None:
        if not yes:
            return
        try:
            delete_session(session.path)
        except ArchiveError as error:
            self.notify(f"{error} {error.hint}", severity="error", markup=False)
        self._look_again()

    def _look_again(self) -> None:
        self._sessions = None
        self.refill()


class RenameScreen(ModalScreen[str | None], DismissOnceScreen[str | None]):
    """Asks for a conversation's name. Gives it; an empty one takes the name away, None leaves it."""

    DEFAULT_CSS = """
    RenameScreen { align: center middle; }
    RenameScreen > Vertical {
        width: 70;
        max-width: 100%;
        height: auto;
        padding: 0 1;
        background: $surface;
        border: round $primary;
    }
    RenameScreen Input { border: none; height: 1; padding: 0; }
    RenameScreen Input:focus { border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "No", show=False)]

    def __init__(self, name: str, words: str = "Its new name (empty: its first question):") -> None:
        super().__init__()
        self._name_now, self._words = name, words

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self._words)
            yield Input(self._name_now, compact=True)

    @on(Input.Submitted)
    def take(self, message: Input.Submitted) -> None:
        self.dismiss(" ".join(message.value.split()))
