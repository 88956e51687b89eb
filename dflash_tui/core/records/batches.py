"""Work of a recorder on a thread of its own, so that the thread which hands it over waits for nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Batches(Generic[Item]):
    """Hands over what was put in, in its order: at once where something is due, otherwise after some seconds."""

    def __init__(self, name: str, seconds: float, write: Callable[[list[Item]], None]) -> None:
        """``write`` is called on the thread, with what has come; ``seconds``: what may be lost when it is killed."""
        self._seconds, self._write = seconds, write
        self._items: SimpleQueue[Item | None] = SimpleQueue()
        """The items that the thread has still to write; None says that nothing more comes."""
        self._due = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def put(self, item: Item, *, due: bool = False) -> None:
        """Give an item to the thread; ``due`` has it written at once. Call it from one thread at a time, before
        :meth:`close`."""
        if self._thread.ident is None:
            self._thread.start()
        self._items.put(item)
        if due:
            self._due.set()

    def close(self) -> None:
        """Everything is written when this returns."""
        if self._thread.ident is not None:
            self._items.put(None)
            self._due.set()
            self._thread.join()

    def _run(self) -> None:
        batch: list[Item | None] = []
        while None not in batch:
            batch = [self._items.get()]
            self._due.wait(self._seconds)
            self._due.clear()
            batch += [self._items.get_nowait() for _ in range(self._items.qsize())]
            if items := [item for item in batch if item is not None]:
                self._write(items)
