"""A list that looks into everything that was said, and takes in what is new while it is on the screen."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from textual.containers import Vertical
from textual.worker import get_current_worker

from dflash_tui.core.text.counted import counted

from .picker import PickerScreen

if TYPE_CHECKING:
    from dflash_tui.core.sessions.search import Hit, Search

Entry = TypeVar("Entry")


class IndexedScreen(PickerScreen[Entry]):
    """A list with a search index of its own; subclasses look words up with :meth:`said`."""

    def __init__(self, directory: Path, words: str = "") -> None:
        super().__init__(words)
        self._directory = directory
        self._search: Search | None = None

    def on_mount(self) -> None:
        """Called beside the list's own."""
        self.run_worker(self._take_in, thread=True, exit_on_error=False)

    def on_unmount(self) -> None:
        if self._search is not None:
            self._search.close()

    def hits(self, words: str) -> Iterable[Hit]:
        """The places where all of ``words`` were said, as far as the index knows."""
        if self._search is None:
            from dflash_tui.core.sessions.search import Search  # the first frame needs no database

            self._search = Search(self._directory)
        return (hit for hit in self._search.known(words) if hit.path.exists())

    def _take_in(self) -> None:
        """Bring the index up to date, on a thread with a connection of its own."""
        from dflash_tui.core.sessions.search import Search

        worker, search = get_current_worker(), Search(self._directory)
        try:
            for left in search.update():
                if worker.is_cancelled:
                    return
                self.app.call_from_thread(partial(self._tell, left))
        finally:
            search.close()

    def _tell(self, left: int) -> None:
        """Called while the index is brought up to date: ``left`` conversations are still to be read."""
        if self.is_active:
            if self.words:
                self.refill()
            self.query_one(Vertical).border_subtitle = (
                f"still to be read: {counted(left, 'conversation')}" if left else ""
            )
