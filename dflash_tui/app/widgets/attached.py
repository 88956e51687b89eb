"""The files that the question in the prompt mentions: a line above it, with what they take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from textual.content import Content
from textual.timer import Timer
from textual.widget import Widget
from textual.worker import get_current_worker

from dflash_tui.core.attachments.attachment import Attachment, about_tokens, tokens_of
from dflash_tui.core.attachments.attachment_reader import AttachmentError
from dflash_tui.core.desk.question_files import problem_words
from dflash_tui.core.text.wrapping import shortened

SHOWN = 3
"""How many names of files the line shows."""
PAUSE = 0.2
"""Seconds without a key after which files are looked at."""


class Attached(Widget):
    """The line above the prompt that names the attached files, or says why one can't be. Hidden while there are
    none."""

    DEFAULT_CSS = """
    Attached { display: none; height: 1; padding: 0 1; color: $verdict-pending; }
    """

    def __init__(self, read: Callable[[str], tuple[Attachment, ...]], limit: Callable[[], int], *, id: str) -> None:
        """``read`` gives the files that a text mentions, or raises ``AttachmentError``; ``limit`` the tokens that the
        context holds, 0 if that is not known."""
        super().__init__(id=id)
        self._read, self._most = read, limit
        self._due: Timer | None = None
        self._typed = self._refused = ""
        self._files: tuple[Attachment, ...] = ()
        self._problem = ""
        self._limit = 0
        self._words = self._share = ""

    def look(self, typed: str) -> None:
        """Called when the prompt has changed to ``typed``: show soon which files it mentions."""
        self._wait_no_more()
        self._typed = typed
        if typed and typed != self._refused:
            self._refused = ""
        if "@" not in typed or typed.startswith("/"):
            self.show((), 0)
            return
        self._due = self.set_timer(PAUSE, partial(self.look_now, typed))

    def refuse(self, typed: str) -> None:
        """Don't say what is wrong with the files in ``typed``: a notice has said it."""
        self._refused = typed

    def _wait_no_more(self) -> None:
        if self._due is not None:
            self._due.stop()
            self._due = None

    def look_now(self, typed: str) -> None:
        self._wait_no_more()
        self.run_worker(
            partial(self._look, typed), name="files", group="files", exclusive=True, thread=True, exit_on_error=False
        )

    def _look(self, typed: str) -> None:
        """Read the files that ``typed`` mentions, on a thread of its own, and show them."""
        files, problem = tuple[Attachment, ...](), ""
        try:
            files = self._read(typed)
        except AttachmentError as error:
            problem = problem_words(error)
        if not get_current_worker().is_cancelled and self.app.is_running:
            self.app.call_from_thread(self._take, typed, files, problem)

    def _take(self, typed: str, files: tuple[Attachment, ...], problem: str) -> None:
        if typed == self._typed:
            self.show(files, self._most(), "" if typed == self._refused else problem)

    def show(self, files: Sequence[Attachment], limit: int, problem: str = "") -> None:
        """Show the files, or the ``problem`` with them. ``limit``: tokens that the context holds, 0 if not known."""
        if (tuple(files), problem, limit) != (self._files, self._problem, self._limit):
            self._files, self._problem, self._limit = tuple(files), problem, limit
            self._words, self._share = _named(self._files), _share(self._files, limit)
            self.display = bool(files or problem)
            self.refresh()

    def render(self) -> Content:
        width = self.size.width
        if self._problem:
            return Content.assemble(("✗ ", "$text-error"), (shortened(self._problem, max(width - 2, 1)), "$text-error"))
        return Content(f"@ {shortened(self._words, max(width - 2 - len(self._share), 1))}{self._share}")


def _named(files: Sequence[Attachment]) -> str:
    names = [f"{file.name} {tokens_of(file)}" for file in files[:SHOWN]]
    left = len(files) - len(names)
    return " · ".join([*names, *([f"{left} more"] if left else [])])


def _share(files: Sequence[Attachment], limit: int) -> str:
    """The share of a context of ``limit`` tokens that the files take, in words; empty where the limit is not known."""
    if not limit or not files:
        return ""
    total = sum(about_tokens(file.text) if file.num_tokens is None else file.num_tokens for file in files)
    return f" · {total / limit:.0%} of the context"
