"""Where Linux and macOS differ, and what a system must have. Nothing else of the front ends asks which one it is; the
engine's own is ``engine/machine.py``."""

from __future__ import annotations

import errno
import os
import signal
import sys
from pathlib import Path

UNFIT = "dflash-chat runs on Linux and macOS; on Windows, in WSL." if sys.platform == "win32" else ""
"""Why the program doesn't run on this system; empty where it does."""
MAC = sys.platform == "darwin"
NEVER_WAITING = os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY if not UNFIT else 0
"""Flags for ``os.open``, with which a pipe or a terminal keeps nobody waiting."""
SIGNALS = {signal.SIGTERM: 143, signal.SIGHUP: 129} if not UNFIT else {}
"""The signals that end the screen in an orderly way, and the exit code of each."""


def suspend() -> bool:
    """Stop this job, as Ctrl+Z does, until its shell goes on with it; False where no shell would: where the job is the
    session itself, as in a new window of tmux."""
    if os.getsid(0) == os.getpgrp():
        return False
    os.kill(0, signal.SIGTSTP)  # with make, or whatever stands between the shell and us
    return True


def lock(descriptor: int, path: Path) -> None:
    """Keep other windows from writing to an open file, until it is closed or the process ends, however that comes.
    Raises ``BlockingIOError`` when another window has it; a file system without locks is no failure."""
    from filelock import lock_descriptor  # takes a while, and a screen opens without it

    try:
        free = lock_descriptor(descriptor, blocking=False)
    except OSError:
        return
    if not free:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), str(path))


def close(descriptor: int, path: Path, *, remove: bool = False) -> None:
    """Release a locked file; ``remove`` deletes it first, while nobody else can have it. Raises ``OSError``."""
    try:
        if remove:
            path.unlink()
    finally:
        os.close(descriptor)


def last_byte(descriptor: int) -> bytes:
    """The last byte of a file that is only appended to; empty for an empty one."""
    end = os.lseek(descriptor, 0, os.SEEK_END)
    return os.pread(descriptor, 1, end - 1) if end else b""


def own_screen() -> bool:
    """Whether the desktop shows things without a display server that a variable names."""
    return MAC


def opener() -> str:
    """The program that asks the desktop to show a file."""
    return "open" if MAC else "xdg-open"
