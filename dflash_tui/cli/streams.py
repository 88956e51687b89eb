"""stdout and stderr where something is wrong with them: closed by the shell, a full disk, a reader that went away."""

from __future__ import annotations

import io
import os
import sys
from typing import Any, BinaryIO

from .problems import Problem


class _Closed(io.TextIOBase):
    """What a shell's ``>&-`` leaves: whatever was to go there would be lost."""

    @property
    def buffer(self) -> BinaryIO:
        raise _lost()

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return 1

    def write(self, text: str, /) -> int:
        raise _lost()


class _BestEffort(io.FileIO):
    """Remarks are not worth failing for."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(data)


def prepare_streams() -> None:
    """stdout may be closed until something is printed. stderr takes what can be written and drops the rest."""
    for number in (0, 1, 2):
        _keep_taken(number)
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None or sys.stderr is sys.__stderr__:
        encoding = sys.stderr.encoding if sys.stderr else "utf-8"
        raw = _BestEffort(2, "w", closefd=False)
        sys.stderr = io.TextIOWrapper(raw, encoding, "backslashreplace", write_through=True)


def _keep_taken(number: int) -> None:
    """A file that is opened later must not get the number of a standard stream that is closed."""
    try:
        os.fstat(number)
    except OSError:
        os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one


def silence_stdout() -> None:
    """Point stdout nowhere, so that flushing it at exit does not complain about a reader that went away."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _lost() -> Problem:
    return Problem("stdout is closed: what belongs there would be lost.", "Leave >&- out, or write >/dev/null.")
