"""The file of a conversation: whole lines of JSON at its end, one writer at a time, and reading what is whole."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FORMAT_VERSION = 1


_as_json = json.JSONEncoder(ensure_ascii=False).encode


def encode(lines: Iterable[dict[str, Any]]) -> bytes:
    return "".join(_as_json(line) + "\n" for line in lines).encode("utf-8", "replace")


def open_private(path: Path) -> int:
    """A new file. Raises ``OSError``."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
    _lock(descriptor)
    return descriptor


def open_whole(path: Path) -> int:
    """Open an older file to append whole lines to it, and keep other windows from doing the same. Raises ``OSError``,
    ``BlockingIOError`` when another window has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
    try:
        _lock(descriptor)
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.ftruncate(descriptor, whole)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def append_line(path: Path, line: dict[str, Any]) -> None:
    """Add to a conversation that this program is not writing. Raises ``OSError``."""
    try:
        descriptor = open_whole(path)
    except BlockingIOError:  # another window writes whole lines to it: so may we
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(descriptor, encode([line]))
    finally:
        os.close(descriptor)


def read_lines(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The lines of a conversation, without a last one cut short, and how many could not be read. ``OSError`` when
    unreadable, ``ValueError`` when it is no conversation or a newer program's."""
    lines: list[dict[str, Any]] = []
    damaged = 0
    for raw in path.read_bytes().split(b"\n")[:-1]:
        line = decoded(raw)
        if line is None and not lines:
            break
        if line is None:
            damaged += 1
        else:
            lines.append(line)
    head = lines[0] if lines else {}
    if head.get("type") != "session" or not isinstance(head.get("created"), str):
        raise ValueError(f"{path} is not a conversation of dflash-chat.")
    version = head.get("version", 0)
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise ValueError(f"{path} was written by a newer dflash-chat (format {version}).")
    return lines, damaged


def decoded(raw: bytes) -> dict[str, Any] | None:
    """None for what is no line of a conversation."""
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) and isinstance(line.get("type"), str) else None


def _lock(descriptor: int) -> None:
    """Until it is closed, or the process ends. Raises ``BlockingIOError`` when another window holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return  # a file system without locks
