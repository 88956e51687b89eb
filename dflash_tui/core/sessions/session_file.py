"""The file of a conversation: whole lines of JSON at its end, one writer at a time, and reading what is whole."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..platforms import close, last_byte, lock

FORMAT_VERSION = 3
"""The version of conversations' files: the one that is written and read."""
JsonLine = dict[str, Any] | list[Any] | str
"""An object with a ``type`` or, where it is an event, its name; or rounds: see FORMAT.md."""
OLD_TRACE = b"dflash-trace "
"""What recordings began with when they had a format of their own."""


PIECE_BYTES = 1 << 20
MOST_RECORDS = 64
"""Places in one line at which a record is looked for: a line made for it would take a minute otherwise."""
_BEGINNING = re.compile(r'\{"(?:type|event)":"|\[\d+,\d+,\d+,\[')
"""What records of a file begin with."""
_DECODER = json.JSONDecoder()
_as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def encode(lines: Iterable[JsonLine]) -> bytes:
    return "".join(_as_json(line) + "\n" for line in lines).encode("utf-8", "replace")


def open_private(path: Path) -> int:
    """A new file that is the user's alone, and its folder. Raises ``OSError``."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return open_new(path, 0o600)


def open_new(path: Path, mode: int = 0o666) -> int:
    """A new file. Raises ``OSError``."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL, mode)
    lock(descriptor, path)
    return descriptor


def open_whole(path: Path) -> int:
    """Open an older file to append whole lines to it, and keep other windows from doing the same. Raises ``OSError``,
    ``BlockingIOError`` when another window has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
    try:
        lock(descriptor, path)
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.ftruncate(descriptor, whole)
    except BaseException:
        close(descriptor, path)
        raise
    return descriptor


def append(descriptor: int, data: bytes | bytearray) -> int:
    """Write all of ``data`` at the end of a file, or nothing; returns where it begins. Raises ``OSError``."""
    begin = os.lseek(descriptor, 0, os.SEEK_END)
    written = 0
    try:
        while written < len(data):
            count = os.write(descriptor, memoryview(data)[written:])
            if not count:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            written += count
    except OSError:
        if written:
            with suppress(OSError):
                if os.lseek(descriptor, 0, os.SEEK_END) == begin + written:  # nobody else has written behind it
                    os.ftruncate(descriptor, begin)
        raise
    return begin


def rewrite_end(path: Path, descriptor: int, start: int, data: bytes) -> None:
    """Put ``data``, which says the same in fewer bytes, in the place of what a file holds from ``start`` on. It is at
    the file's end before anything is overwritten: whenever this ends, the file says everything at least once. Raises
    ``OSError``."""
    if start + len(data) > os.lseek(descriptor, 0, os.SEEK_END):
        return
    end = append(descriptor, data) + len(data)
    again = os.open(path, os.O_WRONLY)
    try:
        if not os.path.samestat(os.fstat(again), os.fstat(descriptor)):
            return
        os.lseek(again, start, os.SEEK_SET)
        whole = os.write(again, data) == len(data)
        if whole and os.lseek(again, 0, os.SEEK_END) == end:  # otherwise another window has written behind it
            os.ftruncate(again, start + len(data))
    finally:
        os.close(again)


def recreate_if_deleted(path: Path, descriptor: int) -> int:
    """A descriptor of the file to write on: the one given, or, where somebody has deleted the file meanwhile, that of a
    new one with all that was written. Raises ``OSError``; then the one given holds all of it still."""
    if os.fstat(descriptor).st_nlink:
        return descriptor
    again = open_private(path)
    try:
        append(again, _everything(descriptor))
    except BaseException:
        with suppress(OSError):
            close(again, path, remove=True)
        raise
    os.close(descriptor)
    return again


def _everything(descriptor: int) -> bytes:
    """What a file holds, however much of it one call reads. Raises ``OSError``."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    pieces = []
    while piece := os.read(descriptor, PIECE_BYTES):
        pieces.append(piece)
    return b"".join(pieces)


def append_line(path: Path, line: JsonLine) -> None:
    """Add to a conversation that this program is not writing. Raises ``OSError``."""
    try:
        descriptor = open_whole(path)
    except BlockingIOError:  # another window writes whole lines to it: so may we
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
    try:
        begin = (
            b"" if last_byte(descriptor) in (b"", b"\n") else b"\n"
        )  # where a full disk cost that window a line's end
        append(descriptor, begin + encode([line]))
    finally:
        close(descriptor, path)


def read_lines(path: Path) -> tuple[dict[str, Any], list[JsonLine], int]:
    """The head of a conversation, its other lines without a last one cut short, and how many could not be read.
    ``OSError`` when unreadable, ``ValueError`` when it is no conversation or another version's."""
    lines: list[JsonLine] = []
    damaged, (first, *others) = 0, path.read_bytes().split(b"\n")
    head = check_head(path, first if others else b"")
    for raw in others[:-1]:
        records, whole = records_in(raw)
        damaged += not whole
        lines += records
    return head, lines, damaged


def check_head(path: Path, first: bytes) -> dict[str, Any]:
    """A conversation's head, by its first line. ``ValueError`` when it is none, or another version's."""
    if first.startswith(OLD_TRACE):
        raise ValueError(f"{path} was recorded by an older dflash-chat.")
    head = next(iter(records_in(first)[0]), None)
    if not isinstance(head, dict) or head.get("type") != "session" or not isinstance(head.get("created"), str):
        raise ValueError(f"{path} is not a conversation of dflash-chat.")
    version = head.get("version", 0)
    if version != FORMAT_VERSION:
        age = "an older" if isinstance(version, int) and version < FORMAT_VERSION else "a newer"
        raise ValueError(
            f"{path} was written by {age} dflash-chat (format {version}; this one reads {FORMAT_VERSION})."
        )
    return head


def records_in(raw: bytes) -> tuple[list[JsonLine], bool]:
    """The records in one line of a file, and whether they are all that it holds. There is one, but where a write was
    cut short by a full disk or a power cut, and the next stands behind it."""
    try:
        return ([line], True) if _is_record(line := json.loads(raw)) else ([], False)
    except (ValueError, RecursionError):
        pass
    text = raw.decode("utf-8", "replace")
    lines: list[JsonLine] = []
    offset, whole, num_tries = 0, True, 0
    while 0 <= offset < len(text) and num_tries < MOST_RECORDS:
        num_tries += 1
        try:
            line, end = _DECODER.raw_decode(text, offset)
        except (ValueError, RecursionError):
            line, end = None, offset
        if _is_record(line):
            lines.append(line)
            offset = end
        else:
            whole = False
            begins = _BEGINNING.search(text, offset + 1)
            offset = begins.start() if begins else -1
    return lines, whole and offset == len(text)


def _is_record(line: Any) -> bool:
    return isinstance(line, str | list) or (
        isinstance(line, dict) and isinstance(line.get("type", line.get("event")), str)
    )
