"""stdout and stderr where something is wrong with them: closed by the shell, a full disk, a reader that went away."""

from __future__ import annotations

import io
import os
import select
import sys
from typing import Any, BinaryIO

from ..problems import Problem

READ_SECONDS, SURE_BYTES = 1.0, 512
"""Seconds that a remark waits for a reader; and how many bytes at once never wait in a pipe that takes any."""


class _Closed(io.TextIOBase):
    """Stands for a stdout that the shell closed with ``>&-``. Writing to it raises: what is written would be lost."""

    @property
    def buffer(self) -> BinaryIO:
        raise _lost()

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return 1

    def write(self, text: str, /) -> int:
        raise _lost()


class BestEffort(io.FileIO):
    """A stderr whose remarks are not worth failing or waiting for: what nobody reads for a second is dropped, and what
    comes behind it until somebody does."""

    _patience = READ_SECONDS

    def write(self, data: Any, /) -> int:
        try:
            for start in range(0, len(data), SURE_BYTES):
                if not self._takes():
                    break
                super().write(data[start : start + SURE_BYTES])
        except OSError:
            pass
        return len(data)

    def _takes(self) -> bool:
        """Whether the stream accepts a write without blocking."""
        if not hasattr(select, "poll"):
            return True
        poll = select.poll()
        poll.register(self.fileno(), select.POLLOUT)
        ready = bool(poll.poll(1000 * self._patience))
        self._patience = READ_SECONDS if ready else 0.0
        return ready


def prepare_streams() -> None:
    """stdout may be closed until something is printed, and shows ? for what its encoding lacks. stderr takes what can
    be written and drops the rest."""
    for number in (0, 1, 2):
        _keep_taken(number)
    if sys.stdout is None:
        sys.stdout = _Closed()
    elif isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")
    if sys.stderr is None or sys.stderr is sys.__stderr__:
        encoding = sys.stderr.encoding if sys.stderr else "utf-8"
        raw = BestEffort(2, "w", closefd=False)
        sys.stderr = io.TextIOWrapper(raw, encoding, "backslashreplace", write_through=True)


def _keep_taken(number: int) -> None:
    """Open a standard stream that is closed, so that no file which is opened later gets its number."""
    try:
        os.fstat(number)
    except OSError:
        os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one


def silence_stdout() -> None:
    """Point stdout nowhere, so that flushing it at exit does not complain about a reader that went away."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _lost() -> Problem:
    return Problem("stdout is closed: what belongs there would be lost.", "Leave >&- out, or write >/dev/null.")
