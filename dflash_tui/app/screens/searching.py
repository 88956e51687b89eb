"""A list that looks into everything that was said, and reads it while it is on the screen."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from textual.containers import Vertical
from textual.worker import get_current_worker

from dflash_tui.core.text.counted import counted

from .picker import PickerScreen

if TYPE_CHECKING:
    from dflash_tui.core.sessions.search import Hit

Entry = TypeVar("Entry")
PAUSE = 0.1
"""Seconds between two looks at what was read by then."""


class SearchingScreen(PickerScreen[Entry]):
    """A list with a search of its own; subclasses look words up with :meth:`hits`."""

    def __init__(self, directory: Path, words: str = "") -> None:
        super().__init__(words)
        from dflash_tui.core.sessions.search import Search  # not before the first frame

        self._directory, self._search = directory, Search(directory)

    def on_mount(self) -> None:
        """Called beside the list's own."""
        self.run_worker(self._read, thread=True, exit_on_error=False)

    def hits(self, words: str) -> Iterable[Hit]:
        """The places where all of ``words`` were said, as far as was read."""
        return (hit for hit in self._search.known(words) if hit.path.exists())

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
            self.query_one(Vertical).border_subtitle = (
                f"still to be read: {counted(left, 'conversation')}" if left else ""
            )
