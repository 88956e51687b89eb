"""Turns the bytes of an answer into its events, judged by what they are and never by their label: server-sent events,
JSON by itself or one object after the other, or something else, of which the words are kept. Pure: it knows no
connection."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..names import NOTHING
from ..untrusted import parsed, values

MOST_EVENT = 64 << 20
"""Most bytes of one event, and of an answer that is no stream."""
MOST_EMPTY = 4 << 20
"""Most bytes of a stream without an event."""
TRIED_ANEW = 1 << 18
"""Bytes of an unfinished JSON up to which parsing is tried with every part that comes; beyond that more rarely."""
MOST_WORDS = 4000

Json = Mapping[str, Any]
_LINE_END = re.compile(rb"\r\n|\n|\r")
_DATA = re.compile(rb"data\s*:\s*(?=[\[{\"]|\W*done\b)", re.IGNORECASE)
_DONE = re.compile(r"\W*((done|end|eos|eof)\W*)+", re.IGNORECASE)
_ENDS = ("done", "end", "complete", "completed", "finish", "finished", "message_stop")
_BEFORE = bytes(range(0x21)) + b"\xef\xbb\xbf\x7f"
"""Bytes that may stand before a line and say nothing."""


class Endless(Exception):
    """Raised for more bytes than any answer has, without an event in them."""


class Framing:
    """Takes the bytes of an answer in pieces of any size and gives its events, which are JSON objects; what a server
    calls an error is one with the field ``error``. Words that are no event come as text: each costs itself alone."""

    def __init__(self) -> None:
        self.done = False
        """Whether ``[DONE]`` has come: what stands behind it is ignored."""
        self._parts: list[bytes] = []
        """What has come and belongs to no event yet."""
        self._size = self._next_try = self._idle = 0
        self._kind = ""
        """``json``, ``page`` or ``lines``; empty before the first byte that tells."""
        self._data: list[str] = []
        self._name = ""
        self._split_end = False
        """Whether the last part ended between CR and LF, or with a CR alone."""

    def feed(self, chunk: bytes) -> list[Json | str]:
        """The events that these bytes complete. Raises ``Endless``."""
        if self._split_end and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._parts.append(chunk)
        self._size += len(chunk)
        self._idle += len(chunk)
        if not self._kind and not self.done:
            start = self._taken().lstrip(_BEFORE)
            self._put(start)
            first = start[:1]
            self._kind = "" if not first else "json" if first in b"{[" else "page" if first == b"<" else "lines"
        events: list[Json | str] = []
        if self._kind == "json" and not _begins_done(self._parts):
            events += self._values()
        elif self._kind == "json":
            self._kind = "lines"
        if self._kind == "lines" and (b"\n" in chunk or b"\r" in chunk or chunk.endswith((b"}", b"]"))):
            events += self._lines()
        self._split_end = self._kind == "lines" and chunk.endswith(b"\r")
        self._idle = 0 if events else self._idle
        if self._size > MOST_EVENT or (self._kind == "lines" and self._idle - self._size > MOST_EMPTY):
            raise Endless
        return events

    def end(self) -> list[Json | str]:
        """The events that were still waiting for more when the connection ended."""
        rest = self._taken()
        if self.done or (not rest and not self._data):
            return []
        if self._kind == "lines":
            return [*(self._line(rest) if rest else ()), *self._dispatched()]
        if self._kind == "page":
            return [rest[:MOST_WORDS].decode("utf-8", "replace")]
        events, left = values(rest.decode("utf-8", "replace"))
        return [*events, *_words(left)]

    def _taken(self) -> bytes:
        rest, self._parts, self._size = b"".join(self._parts), [], 0
        return rest

    def _put(self, rest: bytes) -> None:
        self._parts, self._size = [rest] if rest else [], len(rest)

    def _lines(self) -> Iterator[Json | str]:
        *lines, rest = _LINE_END.split(self._taken())
        if len(rest) <= TRIED_ANEW and rest.endswith((b"}", b"]")) and _is_whole(rest):  # the last, which nothing ends
            lines, rest = [*lines, rest], b""
        self._put(rest)
        for line in lines:
            yield from self._line(line)
            if self.done:
                return

    def _values(self) -> Iterator[Json]:
        """The events of JSON that stands by itself. Server-sent events may follow it."""
        if self._size < self._next_try:
            return
        text = self._taken()
        events, left = values(text.decode("utf-8", "surrogateescape"))
        rest = left.encode("utf-8", "surrogateescape")
        self._put(rest)
        self._next_try = len(text) * 3 // 2 if len(rest) == len(text) > TRIED_ANEW else 0
        if left and (left[0] not in "{[" or _begins_done([rest])):
            self._kind = "lines"
        yield from events

    def _line(self, line: bytes) -> Iterator[Json | str]:
        if not line:
            yield from self._dispatched()
            return
        line = line.lstrip(_BEFORE)
        if line[:1] in (b"{", b"["):
            yield from self._strange(line.decode("utf-8", "replace").strip())
            return
        name, _, value = line.partition(b":")
        text = value.decode("utf-8", "replace").strip()
        match name.strip().lower():
            case b"data":
                yield from self._field(text)
            case b"event" | b"id" | b"retry" if match := _DATA.search(value):
                yield from self._field(value[match.end() :].decode("utf-8", "replace").strip())
            case b"event":
                self._name = text.lower()
            case b"error":
                yield from self._dispatched()
                yield _as_error(_json_of(text) or text)
            case b"id" | b"retry" | b"":  # a comment: a sign of life, as every byte is
                pass
            case _ if match := _DATA.search(line):
                yield from self._field(line[match.end() :].decode("utf-8", "replace").strip())
            case _ if re.fullmatch(rb"\s*[0-9a-fA-F]{1,8}\s*", line):
                pass  # the size of a chunk, which a proxy left there
            case _:
                yield from self._strange(line.decode("utf-8", "replace").strip())

    def _field(self, text: str) -> Iterator[Json | str]:
        value = _json_of(text)
        if value is None or (self._data and not (isinstance(value, dict) and "choices" in value)):
            self._data.append(text)
        else:  # it is whole, hence waits for no blank line
            yield from self._dispatched()
            yield from self._events_in(value, text)

    def _strange(self, text: str) -> Iterator[Json | str]:
        """What a line says that is no field of server-sent events: JSON as it stands, an end, or words."""
        events, left = ([], text) if _DONE.fullmatch(text) else values(text)
        yield from events
        self.done = self.done or bool(left and _DONE.fullmatch(left))
        yield from () if self.done else _words(left)

    def _dispatched(self) -> Iterator[Json | str]:
        """The event whose lines waited for a blank line; where they are none together, each that is one by itself."""
        lines, self._data = self._data, []
        text = "\n".join(lines)
        value = _json_of(text) if text.strip() else None
        if value is not None or (self._name == "error" and text):
            yield from self._events_in(value, text)
        elif not NOTHING.fullmatch(self._name or "message"):
            for line in lines:
                yield from self._strange(line)
        self.done = self.done or self._name in _ENDS
        self._name = ""

    def _events_in(self, value: Any, text: str) -> Iterator[Json | str]:
        if value == _DONE:
            self.done = True
        elif self._name == "error":
            yield _as_error(text if value is None else value)
        elif isinstance(value, str):
            yield from _words(value)
        else:
            yield from (each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict))


def _begins_done(parts: list[bytes]) -> bool:
    """Whether what looks like the beginning of an array is that of ``[DONE]``."""
    start = b"".join(parts)[:6].upper() if parts and parts[0][:1] == b"[" else b""
    return start[1:2] in (b"D", b"E")


def _words(text: str) -> Iterator[str]:
    if text.strip() and not NOTHING.fullmatch(text.strip()):
        yield text.strip()[:MOST_WORDS]


def _json_of(text: str) -> Any:
    """The JSON of a text, ``_DONE`` for one that ends a stream; None for anything else."""
    if _DONE.fullmatch(text):
        return _DONE
    try:
        return parsed(text) or []  # null, "" and {} all say nothing
    except ValueError:
        return None


def _is_whole(line: bytes) -> bool:
    name, _, value = line.lstrip(_BEFORE).partition(b":")
    return (
        name.strip().lower() in (b"data", b"error") and _json_of(value.decode("utf-8", "replace").strip()) is not None
    )


def _as_error(value: Any) -> Json:
    return value if isinstance(value, dict) and value.get("error") else {"error": value or "it does not say why"}
