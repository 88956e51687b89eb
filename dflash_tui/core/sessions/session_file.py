"""The file of a conversation: whole lines of JSON at its end, one writer at a time, and reading what is whole."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..platforms import BINARY, close, lock

FORMAT_VERSION = 2
"""The version of conversations' files: the one that is written and read."""
Line = dict[str, Any] | list[str] | str
"""An object with a ``type``; or what a round of the latest turn says: its answer, or answer and thought."""


_as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def encode(lines: Iterable[Line]) -> bytes:
    return "".join(_as_json(line) + "\n" for line in lines).encode("utf-8", "replace")


def open_private(path: Path) -> int:
    """A new file. Raises ``OSError``."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | BINARY, 0o600)
    lock(descriptor, path)
    return descriptor


def open_whole(path: Path) -> int:
    """Open an older file to append whole lines to it, and keep other windows from doing the same. Raises ``OSError``,
    ``BlockingIOError`` when another window has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | BINARY)
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


def kept(path: Path, descriptor: int) -> int:
    """A descriptor of the file to write on: the one given, or, where somebody has deleted the file meanwhile, that of a
    new one with all that was written. Raises ``OSError``."""
    said = os.fstat(descriptor)
    if said.st_nlink:
        return descriptor
    os.lseek(descriptor, 0, os.SEEK_SET)
    data = os.read(descriptor, said.st_size)
    again = open_private(path)
    os.write(again, data)
    os.close(descriptor)
    return again


def append_line(path: Path, line: Line) -> None:
    """Add to a conversation that this program is not writing. Raises ``OSError``."""
    try:
        descriptor = open_whole(path)
    except BlockingIOError:  # another window writes whole lines to it: so may we
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | BINARY)
    try:
        os.write(descriptor, encode([line]))
    finally:
        close(descriptor, path)


def read_lines(path: Path) -> tuple[dict[str, Any], list[Line], int]:
    """The head of a conversation, its other lines without a last one cut short, and how many could not be read.
    ``OSError`` when unreadable, ``ValueError`` when it is no conversation or another version's."""
    lines: list[Line] = []
    damaged = 0
    for raw in path.read_bytes().split(b"\n")[:-1]:
        line = decoded(raw)
        if line is None and not lines:
            break
        if line is None:
            damaged += 1
        else:
            lines.append(line)
    head = lines.pop(0) if lines else {}
    if not isinstance(head, dict) or head.get("type") != "session" or not isinstance(head.get("created"), str):
        raise ValueError(f"{path} is not a conversation of dflash-chat.")
    version = head.get("version", 0)
    if version != FORMAT_VERSION:
        age = "an older" if isinstance(version, int) and version < FORMAT_VERSION else "a newer"
        raise ValueError(
            f"{path} was written by {age} dflash-chat (format {version}; this one reads {FORMAT_VERSION})."
        )
    return head, lines, damaged


def decoded(raw: bytes) -> Line | None:
    """The object that a line of a conversation holds; None for what is no such line."""
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    is_line = isinstance(line, str | list) or (isinstance(line, dict) and isinstance(line.get("type"), str))
    return line if is_line else None
