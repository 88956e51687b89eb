"""Where operating systems differ: Linux, macOS, Windows, or one without a module that the standard library has on the
others. Nothing else of the front ends asks which one it is; every branch here says why it is one. The engine's own is
``engine/machine.py``."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

WINDOWS = sys.platform == "win32"
MAC = sys.platform == "darwin"


def _module(name: str) -> Any:
    """A module of the standard library, or None where this system has no such thing."""
    try:
        return __import__(name)
    except ImportError:
        return None


termios = _module("termios")
"""Windows has consoles in place of terminals, which answer no question about their colours."""

BINARY: int = getattr(os, "O_BINARY", 0)
"""A flag for ``os.open``, without which Windows would write two bytes for a line's end."""
NEVER_WAITING: int = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY"))
"""Flags for ``os.open``, with which a pipe or a terminal keeps nobody waiting. Windows has no such files."""

TERMINALS = termios is not None
"""Whether a terminal is a file with settings, which ``app/keyboard.py`` reads; where not, Textual has another way."""


def suspend() -> bool:
    """Stop this job, as Ctrl+Z does, until its shell goes on with it; False where no shell would: where the job is the
    session itself, as in a new window of tmux, and on Windows."""
    if WINDOWS or os.getsid(0) == os.getpgrp():
        return False
    os.kill(0, signal.SIGTSTP)  # with make, or whatever stands between the shell and us
    return True


# Files that one program at a time writes to.

_BESIDE: dict[int, int] = {}
"""The descriptors of locks that lie beside files, by the descriptors of these."""


def lock(descriptor: int, path: Path) -> None:
    """Keep other windows from writing to an open file, until :func:`close` or the end of the process, however it comes.
    Raises ``BlockingIOError`` when another window has it; a file system without locks is no failure."""
    from filelock import lock_descriptor  # takes a while, and a screen opens without it

    held = descriptor
    try:
        if WINDOWS:  # a lock is of bytes there, which nobody else could read then: it lies beside
            held = _BESIDE[descriptor] = os.open(_lock_of(path), os.O_RDWR | os.O_CREAT, 0o600)
        free = lock_descriptor(held, blocking=False)
    except OSError:
        return
    if not free:
        if held != descriptor:
            os.close(_BESIDE.pop(descriptor))
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), str(path))


def close(descriptor: int, path: Path, *, remove: bool = False) -> None:
    """Release a locked file; ``remove`` deletes it first, while nobody else can have it. Raises ``OSError``."""
    try:
        if remove and not WINDOWS:  # there a file that is open can't be deleted, and its lock lies beside
            path.unlink()
    finally:
        os.close(descriptor)
        lock_descriptor = _BESIDE.pop(descriptor, None)
        try:
            if remove and WINDOWS:
                path.unlink()
        finally:
            if lock_descriptor is not None:
                os.close(lock_descriptor)
                with suppress(OSError):  # another window holds it by now
                    _lock_of(path).unlink()


def _lock_of(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def last_byte(descriptor: int) -> bytes:
    """The last byte of a file that is only appended to; empty for an empty one. Without ``pread``, which Windows
    lacks."""
    end = os.lseek(descriptor, 0, os.SEEK_END)
    return os.read(descriptor, 1) if end and os.lseek(descriptor, end - 1, os.SEEK_SET) >= 0 else b""


_DEVICES = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9\xb9\xb2\xb3]) *(?:\..*)?", re.IGNORECASE)


def not_a_name(name: str) -> str | None:
    """Why this system can't have a file of that name, in words; None where it can."""
    if not WINDOWS:  # elsewhere only "/" and NUL can't be in one
        return None
    if _DEVICES.fullmatch(name):
        return "is a device on Windows"
    if match := re.search(r'[<>:"|?*\\\x00-\x1f]', name):
        return f"holds {match[0]!r}, which no file's name may on Windows"
    return "ends in a dot or a space, which Windows drops" if name.endswith((".", " ")) and name != "." else None


# Processes.


def apart() -> dict[str, Any]:
    """Arguments for ``Popen`` that give a program a group of its own: Ctrl+C in the terminal is for ours alone."""
    if WINDOWS:  # there are no sessions
        return {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}
    return {"start_new_session": True}


SIGNALS = {
    getattr(signal, name): 128 + number
    for name, number in (("SIGTERM", 15), ("SIGHUP", 1))
    if hasattr(signal, name)  # Windows knows no terminal that hangs up
}
"""The signals that end the screen in an orderly way, and the exit code of each."""


# The terminal and the desktop.


def own_screen() -> bool:
    """Whether the desktop shows things without a display server that a variable names."""
    return WINDOWS or MAC


def opener() -> str:
    """The program that asks the desktop to show a file; Windows has a call in its place, and none."""
    return "" if WINDOWS else "open" if MAC else "xdg-open"


def start_file(path: Path) -> None:
    """Have Windows show a file, which has a call in place of an :func:`opener`. Raises ``OSError``."""
    os.startfile(path)  # type: ignore[attr-defined, unused-ignore]
