"""A fair queue: clients take turns, and each one's own requests keep their order."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Holds the waiting items of several clients, each named by a text."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[T]] = {}
        """Items by client; the client whose turn is next comes first."""

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def join(self, client: str, item: T) -> None:
        self._waiting.setdefault(client, deque()).append(item)

    def next(self) -> T | None:
        """Takes out the oldest item of the client whose turn it is, and puts that client at the end."""
        if not self._waiting:
            return None
        client = next(iter(self._waiting))
        own = self._waiting.pop(client)
        item = own.popleft()
        if own:
            self._waiting[client] = own
        return item

    def leave(self, client: str, item: T) -> bool:
        """Takes out one item; returns False when it isn't waiting."""
        own = self._waiting.get(client)
        if own is None or item not in own:
            return False
        own.remove(item)
        if not own:
            del self._waiting[client]
        return True

    def give_way(self, client: str) -> T | None:
        """Takes out the newest item of the client that has most, if those are at least two more than ``client`` has."""
        if not self._waiting:
            return None
        greedy = max(self._waiting, key=lambda each: len(self._waiting[each]))
        if len(self._waiting[greedy]) < len(self._waiting.get(client, ())) + 2:
            return None
        return self._waiting[greedy].pop()

    def clear(self) -> list[T]:
        """Takes out every item and returns them."""
        items = [item for own in self._waiting.values() for item in own]
        self._waiting.clear()
        return items
