"""Search over everything that was ever said, and the way to each place."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from pathlib import Path

from rich.cells import cell_len, set_cell_size
from textual.content import Content
from textual.worker import get_current_worker

from dflash_tui.core.sessions.search import Hit, Search, excerpt
from dflash_tui.core.text.harmless import sanitise

from .picker import PickerScreen

NAME_SHARE = 4
"""A conversation's name takes this part of the line."""


class FindScreen(PickerScreen[Hit]):
    """Gives the place to open, or None. What was said lately is taken into the index while the screen is there."""

    HEAD = "everything that was said"
    KEYS = "↑ ↓ move · Enter opens it at that place · Esc closes"

    def __init__(self, directory: Path, words: str = "") -> None:
        super().__init__(words)
        self._search = Search(directory)

    def on_mount(self) -> None:
        super().on_mount()
        self.run_worker(self._take_in, thread=True, exit_on_error=False)

    def on_unmount(self) -> None:
        self._search.close()

    def _take_in(self) -> None:
        """On a thread of its own, with its own connection."""
        worker, search = get_current_worker(), Search(self._search.directory)
        try:
            for left in search.update():
                if worker.is_cancelled:
                    return
                self.app.call_from_thread(partial(self._tell, left))
        finally:
            search.close()

    def _tell(self, left: int) -> None:
        """More of it can be found now."""
        if self.is_active:
            self.refill()
            self.query_one("Vertical").border_subtitle = f"{left} conversations still to be read" if left else ""

    def find(self, words: str) -> Iterable[Hit]:
        return [hit for hit in self._search.known(words) if hit.path.exists()]

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
