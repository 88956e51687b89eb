"""Turns the bytes of an answer into its events, judged by what they are and never by their label: server-sent events,
JSON by itself or one object after the other, or something else, of which the words are kept. Pure: it knows no
connection."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..untrusted import parsed, values

MOST_BODY = 8 << 20
"""Most bytes of an answer that is no stream."""
MOST_EVENT = 1 << 20
MOST_EMPTY = 4 << 20
"""Most bytes of a stream without an event."""
TRIED_ANEW = 1 << 18
"""Bytes of an unfinished JSON up to which parsing is tried with every part that comes; beyond that more rarely."""
MOST_STRAY = 4000

Json = Mapping[str, Any]
_LINE_END = re.compile(rb"\r\n|\n|\r")
_ENDS = ("[DONE]", "[done]", "DONE", '"[DONE]"')
_BOM = b"\xef\xbb\xbf"


class Endless(Exception):
    """Raised for more bytes than any answer has, without an event in them."""


class Unreadable(Exception):
    """Raised where there are neither events nor JSON. ``text`` is what came instead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class Framing:
    """Takes the bytes of an answer in pieces of any size and gives its events, which are JSON objects; what a server
    calls an error is one with the field ``error``."""

    def __init__(self) -> None:
        self.done = False
        """Whether ``[DONE]`` has come: what stands behind it is ignored."""
        self.stray = ""
        """The lines of a stream that belong to no event."""
        self._rest = b""
        self._kind = ""
        """``json``, ``page`` or ``lines``; empty before the first byte that tells."""
        self._data: list[str] = []
        self._size = 0
        """Characters in ``_data``."""
        self._name = ""
        self._split_end = False
        """Whether the last part ended between CR and LF, or with a CR alone."""
        self._idle = 0
        self._next_try = 0
        self._told = False

    def feed(self, part: bytes) -> list[Json]:
        """The events that these bytes complete. Raises ``Endless`` and ``Unreadable``."""
        if self._split_end and part.startswith(b"\n"):
            part = part[1:]
        self._rest += part
        self._idle += len(part)
        events = list(self._events())
        self._split_end = self._kind == "lines" and part.endswith(b"\r")
        if events:
            self._idle, self._told = 0, True
        if self._idle > (MOST_EMPTY if self._kind == "lines" else MOST_BODY):
            raise Endless
        return events

    def end(self) -> list[Json]:
        """The events that were still waiting for more when the connection ended. Raises ``Unreadable`` where there was
        no event at all, but something else."""
        kind, rest, self._rest = self._kind, self._rest, b""
        events: list[Json] = []
        if kind == "json" and not self.done:
            events, left = values(rest.decode("utf-8", "replace"))
            self.stray = self.stray or left.strip()[:MOST_STRAY]
        elif kind == "page":
            self.stray = rest[:MOST_STRAY].decode("utf-8", "replace")
        elif kind == "lines":
            events = list(self._line(rest)) if rest else []
            try:
                events += self._dispatched()
            except Unreadable as cut:
                self.stray = self.stray or cut.text[:MOST_STRAY]
        if not (events or self._told or self.done) and self.stray:
            raise Unreadable(self.stray)
        return events

    def _events(self) -> Iterator[Json]:
        if not self._kind and not self.done:
            self._rest = self._rest.removeprefix(_BOM).lstrip()
            if not self._rest or _BOM.startswith(self._rest):
                return
            first = self._rest[:1]
            self._kind = "json" if first in b"{[" else "page" if first == b"<" else "lines"
        if self._kind == "json":
            yield from self._values()
        if self._kind == "lines":
            *lines, self._rest = _LINE_END.split(self._rest)
            if self._rest.endswith((b"}", b"]")) and _is_whole(self._rest):  # the last object, which nothing ends
                lines, self._rest = [*lines, self._rest], b""
            if len(self._rest) + self._size > MOST_EVENT:
                raise Endless
            for line in lines:
                yield from self._line(line)
                if self.done:
                    return

    def _values(self) -> Iterator[Json]:
        """The events of JSON that stands by itself. Server-sent events may follow it."""
        size = len(self._rest)
        if size < self._next_try:
            return
        events, left = values(self._rest.decode("utf-8", "surrogateescape"))
        self._rest = left.encode("utf-8", "surrogateescape")
        self._next_try = size * 3 // 2 if len(self._rest) == size > TRIED_ANEW else 0
        if left and left[0] not in "{[":
            self._kind = "lines"
        yield from events

    def _line(self, line: bytes) -> Iterator[Json]:
        if not line:
            yield from self._dispatched()
            return
        name, _, value = line.partition(b":")
        match name.strip().lower():
            case b"":
                pass  # a comment: a sign of life, as every byte is
            case b"data":
                text = value.decode("utf-8", "replace").strip()
                said = None if self._data else _said(text)
                if said is not None:  # it is whole, hence waits for no blank line
                    yield from self._told_by(said, text)
                else:
                    self._data.append(text)
                    self._size += len(text)
            case b"event":
                self._name = value.strip().decode("utf-8", "replace").lower()
            case b"error":
                yield from self._dispatched()
                text = value.decode("utf-8", "replace").strip()
                yield _as_error(_said(text) or text)
            case b"id" | b"retry":
                pass
            case _:
                yield from self._strange(line.decode("utf-8", "replace"))

    def _strange(self, text: str) -> Iterator[Json]:
        """The events of a line that is no field of server-sent events: JSON as it stands. Other text is kept as
        ``stray``."""
        events, left = values(text)
        if left.strip() and len(self.stray) < MOST_STRAY:
            self.stray = f"{self.stray}\n{left}".strip()[:MOST_STRAY]
        yield from events

    def _dispatched(self) -> Iterator[Json]:
        """The event whose lines waited for a blank line. Raises ``Unreadable``."""
        text = "\n".join(self._data)
        self._data, self._size = [], 0
        if text.strip():
            said = _said(text)
            if said is None and self._name in ("", "message"):
                raise Unreadable(text)
            yield from self._told_by(said, text)
        self._name = ""

    def _told_by(self, said: Any, text: str) -> Iterator[Json]:
        """The events of a text whose JSON is ``said``; None where it has none, as in a ``ping``."""
        if text.strip() in _ENDS:
            self.done = True
        elif self._name == "error":
            yield _as_error(text if said is None else said)
        else:
            yield from (each for each in (said if isinstance(said, list) else [said]) if isinstance(each, dict))


def _said(text: str) -> Any:
    """The JSON of a text, or the text that ends a stream; None for anything else."""
    if text in _ENDS:
        return text
    try:
        return parsed(text) or []  # null, "" and {} all say nothing
    except ValueError:
        return None


def _is_whole(line: bytes) -> bool:
    name, _, value = line.partition(b":")
    if name.strip().lower() not in (b"data", b"error") or len(line) > TRIED_ANEW:
        return False
    return _said(value.decode("utf-8", "replace").strip()) is not None


def _as_error(said: Any) -> Json:
    return said if isinstance(said, dict) and said.get("error") else {"error": said or "it does not say why"}
