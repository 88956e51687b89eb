"""A text that grows at its end and is read in parts: a byte a character, where most of them are ASCII."""

from __future__ import annotations

CHUNK = 4096
"""Characters that are kept in one string. One of them that is not ASCII makes only its own chunk larger."""


class GrowingText:
    """Grows at its end, and is cut there."""

    __slots__ = ("_chunks", "_tail")

    def __init__(self) -> None:
        self._chunks: list[str] = []
        """The text in pieces of ``CHUNK`` characters each."""
        self._tail = ""

    def append(self, text: str) -> None:
        tail = self._tail + text
        whole = len(tail) - len(tail) % CHUNK
        self._chunks += [tail[start : start + CHUNK] for start in range(0, whole, CHUNK)]
        self._tail = tail[whole:]

    def cut(self, length: int) -> None:
        """Forget what stands behind the first ``length`` characters."""
        rest = self.between(length - length % CHUNK, length)
        del self._chunks[length // CHUNK :]
        self._tail = rest

    def __len__(self) -> int:
        return len(self._chunks) * CHUNK + len(self._tail)

    def __str__(self) -> str:
        return "".join((*self._chunks, self._tail))

    def between(self, start: int, stop: int) -> str:
        """The characters from ``start`` to before ``stop``. Costs what is asked for, however long the text is."""
        first, behind = start // CHUNK, stop // CHUNK + 1
        tail = (self._tail,) if behind > len(self._chunks) else ()
        text = "".join((*self._chunks[first:behind], *tail))
        return text[start - first * CHUNK : stop - first * CHUNK]
