"""The files that the question in the prompt mentions: a line above it, with what they take."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.widget import Widget

from dflash_tui.core.attachments.attachment import Attachment, about_tokens, tokens_of
from dflash_tui.core.text.wrapping import shortened

SHOWN = 3
"""Names that have room."""


class Attached(Widget):
    """Hidden while nothing is attached; says why a file can't be."""

    DEFAULT_CSS = """
    Attached { display: none; height: 1; padding: 0 1; color: $verdict-pending; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._files: tuple[Attachment, ...] = ()
        self._problem = ""
        self._limit = 0

    def show(self, files: Sequence[Attachment], limit: int, problem: str = "") -> None:
        """``limit``: tokens that the context holds, 0 if that is not known."""
        if (tuple(files), problem, limit) != (self._files, self._problem, self._limit):
            self._files, self._problem, self._limit = tuple(files), problem, limit
            self.display = bool(files or problem)
            self.refresh()

    def render(self) -> Content:
        width = self.size.width
        if self._problem:
            return Content.assemble(("✗ ", "$text-error"), (shortened(self._problem, max(width - 2, 1)), "$text-error"))
        names = [f"{file.name} {tokens_of(file)}" for file in self._files[:SHOWN]]
        left = len(self._files) - len(names)
        words = " · ".join([*names, *([f"{left} more"] if left else [])])
        share = self._share
        return Content(f"@ {shortened(words, max(width - 2 - len(share), 1))}{share}")

    @property
    def _share(self) -> str:
        if not self._limit or not self._files:
            return ""
        total = sum(about_tokens(file.text) if file.num_tokens is None else file.num_tokens for file in self._files)
        return f" · {total / self._limit:.0%} of the context"
