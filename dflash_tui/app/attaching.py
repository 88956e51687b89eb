"""Files on the chat screen: what the prompt mentions is read while it is typed, and goes with the question."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.timer import Timer
from textual.worker import get_current_worker

from dflash_tui.core.attachments.attachment import Attachment
from dflash_tui.core.attachments.mentions import as_asked, attach, mention_of
from dflash_tui.core.attachments.reading import AttachmentError, NoSuchFile, Reader
from dflash_tui.core.conversation.slash import SlashError

from .widgets.attached import Attached
from .widgets.prompt import Prompt

if TYPE_CHECKING:
    from .screens.chat import ChatScreen

PAUSE = 0.2
"""Seconds without a key after which files are looked at."""
TAB_COMPLETES = "Look at the path; Tab completes it behind @."


class Attaching:
    """Reads files beside the screen's thread."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
        self._reader = Reader(lambda text: screen.room.ruler.text(text))
        self._due: Timer | None = None
        self._refused = ""
        """What a notice has said the problem of: the line above the prompt does not say it again."""

    def begin(self, paths: Sequence[str]) -> None:
        """Files that were named before the chat opened go with the first question."""
        if paths:
            self._screen.query_one(Prompt).fill("".join(f"{mention_of(path)} " for path in paths))

    def look(self, typed: str) -> None:
        """The prompt has changed: show what it mentions, soon."""
        if self._due is not None:
            self._due.stop()
            self._due = None
        if typed and typed != self._refused:
            self._refused = ""
        line = self._screen.query_one(Attached)
        if "@" not in typed or typed.startswith("/"):
            line.show((), 0)
            return
        self._due = self._screen.set_timer(PAUSE, partial(self._look_now, typed))

    def _look_now(self, typed: str) -> None:
        self._due = None
        self._screen.run_worker(
            partial(self._read, typed), name="files", group="files", exclusive=True, thread=True, exit_on_error=False
        )

    def _read(self, typed: str) -> None:
        """On a thread of its own."""
        limit, files, problem = self._screen.room.limit, tuple[Attachment, ...](), ""
        try:
            files = self._reader.counted(attach(typed, self._reader.read).files, limit)
        except AttachmentError as error:
            problem = _words(error)
        if not get_current_worker().is_cancelled and self._screen.app.is_running:
            self._screen.app.call_from_thread(self._show, typed, files, problem)

    def _show(self, typed: str, files: tuple[Attachment, ...], problem: str) -> None:
        if self._screen.query_one(Prompt).text == typed:
            problem = "" if typed == self._refused else problem
            self._screen.query_one(Attached).show(files, self._screen.room.limit, problem)

    def take(self, typed: str, text: str) -> tuple[str, tuple[Attachment, ...]]:
        """The question and its files, as Enter finds them. ``typed``: with pastes folded, whose words are the user's
        own. Raises ``SlashError`` for a file that can't go with it."""
        if "@" not in typed:
            return text, ()
        known = {file.name: file for exchange in self._screen.chat.tree.path for file in exchange.beside.files}

        def read(path: Path, name: str) -> Attachment:
            try:
                return self._reader.read(path, name)
            except AttachmentError:
                if name in known:  # asked again, and the file has gone: as it was then
                    return known[name]
                raise

        try:
            found = attach(typed, read)
            files = self._reader.counted(found.files, self._screen.room.limit)
        except AttachmentError as error:
            self._refused = typed
            raise SlashError(f"{_words(error)} A plain @ is written @@.") from None
        if found.strange:
            words = f"There is no file {found.strange[0]}: what you wrote went as it stands."
            self._screen.notify(words, severity="warning", timeout=6, markup=False)
        return as_asked(text), files


def _words(error: AttachmentError) -> str:
    """With what the prompt can do about it."""
    return f"{error} {TAB_COMPLETES if isinstance(error, NoSuchFile) else error.hint}"
