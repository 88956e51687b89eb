"""Search over everything that was ever said, and the way to each place."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from rich.cells import cell_len, set_cell_size
from textual.content import Content

from dflash_tui.core.sessions.search import Hit, excerpt
from dflash_tui.core.text.harmless import sanitise

from .searching import SearchingScreen

NAME_SHARE = 4
"""A conversation's name takes one part in so many of the line."""


class FindScreen(SearchingScreen[Hit]):
    """Finds what was said in any conversation. Gives the place to open, or None."""

    HEAD = "everything that was said"
    EMPTY = "type what to look for"
    KEYS = "↑ ↓ move · Enter opens it at that place · Esc closes"

    def find(self, words: str) -> Iterable[Hit]:
        return self.hits(words)

    def describe(self, entry: Hit) -> Content:
        when = datetime.fromtimestamp(entry.changed).strftime("%d %b %Y  ")
        room = self.line_width // NAME_SHARE
        name = sanitise(entry.name)
        name = f"{name if cell_len(name) <= room else set_cell_size(name, room - 1) + '…'}  "
        who = {"question": "you: ", "answer": "", "name": "name: "}[entry.part]
        left = max(self.line_width - cell_len(when) - cell_len(name) - len(who), 12)
        text, marks = excerpt(sanitise(entry.text), self.words, left)
        shown = Content(text)
        for start, end in marks:
            shown = shown.stylize("bold $primary", start, end)
        line = Content.assemble((when, "$verdict-pending"), (name, "$verdict-pending"), (who, "$verdict-pending"))
        return (line + shown).truncate(self.line_width, ellipsis=True)
