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
        self._words = self._share = ""

    def show(self, files: Sequence[Attachment], limit: int, problem: str = "") -> None:
        """``limit``: tokens that the context holds, 0 if that is not known."""
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
    """Of the context, that they take; empty where that is not known."""
    if not limit or not files:
        return ""
    total = sum(about_tokens(file.text) if file.num_tokens is None else file.num_tokens for file in files)
    return f" · {total / limit:.0%} of the context"
