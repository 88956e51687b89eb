"""Where headless output goes: stdout, flushed at every step, or a file, complete or not at all."""

from __future__ import annotations

import errno
import os
import select
import stat
import sys
from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from functools import partial
from pathlib import Path

from dflash_tui.core.text.harmless import signed

from ..problems import Problem
from .writer import Writer

DEFAULT_OUT = Path("dflash-out")
"""The folder in which the screen saves code."""


class Output(ABC):
    """The file or stream that takes an answer; a writer's thread puts it there."""

    def __init__(self) -> None:
        self._writer = Writer()

    @abstractmethod
    def write(self, text: str) -> None:
        """Append. Raises ``BrokenPipeError`` when nobody reads any more."""

    @abstractmethod
    def end(self) -> None:
        """Note that nothing more comes."""

    def written(self, seconds: float | None = None) -> bool:
        """Waits at most so long: whether all is where it belongs. Raises ``OSError``, or :class:`Problem` when the text
        did not reach its file."""
        return self._writer.done(seconds)

    def close(self) -> None:
        """Do as :meth:`end` does, but return when all is written."""
        self.end()
        self.written()


class StandardOutput(Output):
    """UTF-8, its last line ended; on a terminal without what it would act on. :class:`Problem` where it is closed. What
    nobody reads waits, and nobody waits for it before :meth:`close`."""

    def __init__(self) -> None:
        super().__init__()
        self._terminal = sys.stdout.isatty()
        stream = sys.stdout.buffer  # not the text layer: its encoding is the locale's
        sys.stdout.flush()
        self._number = stream.fileno()
        mode = os.fstat(self._number).st_mode
        self._is_file = stat.S_ISREG(mode)
        self._poll = select.poll() if stat.S_ISFIFO(mode) and hasattr(select, "poll") else None
        if self._poll is not None:
            self._poll.register(self._number, select.POLLOUT)
        self._waiting: deque[bytes] = deque()
        self._handed_over = False
        self._last = "\n"

    def write(self, text: str) -> None:
        if not text:
            return
        self._last = text[-1]
        shown = signed(text) if self._terminal else text
        data = shown.encode("utf-8", "replace")
        self._writer.raise_failure()
        if self._writer.idle and self._takes(len(data)):
            _write_all(self._number, data)
            return
        self._waiting.append(data)
        if not self._handed_over:
            self._handed_over = True
            self._writer.hand_over(self._write_waiting)

    def _takes(self, size: int) -> bool:
        """Whether so many bytes are written at once, which spares another thread's waking up."""
        if self._poll is None or size > select.PIPE_BUF:
            return self._is_file
        return bool(self._poll.poll(0))

    def _write_waiting(self) -> None:
        """Write all that has come until now, at once."""
        self._handed_over = False  # before it looks: what comes from now on has somebody who looks again
        pieces = []
        with suppress(IndexError):
            while True:
                pieces.append(self._waiting.popleft())
        _write_all(self._number, b"".join(pieces))

    def end(self) -> None:
        if self._last != "\n":
            self.write("\n")


def _write_all(number: int, data: bytes) -> None:
    """Write to a descriptor past Python's own buffer, which would hold up the program's end in the middle of a
    write."""
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(number, left) :]
        except BlockingIOError:  # some who start programs give them pipes that don't wait
            select.select([], [number], [])


def show_on_stderr(text: str) -> None:
    """Print a text on stderr that stdout was not to get, so that it isn't lost."""
    shown = signed(text) if sys.stderr.isatty() else text
    sys.stderr.write(shown if shown.endswith("\n") else f"{shown}\n")
    sys.stderr.flush()


class FileOutput(Output):
    """Collects, then writes ``path``, its last line ended. Raises :class:`Problem` at once when that can't be done, or
    unless ``force`` when something would be lost; None: the command has no such flag."""

    def __init__(self, path: Path, force: bool | None = None) -> None:
        super().__init__()
        self._path = path
        self._force = force
        self._pieces: list[str] = []
        self._check()

    def write(self, text: str) -> None:
        self._pieces.append(text)

    def end(self) -> None:
        if any(self._pieces):
            self._writer.hand_over(partial(self._save, "".join(self._pieces)))

    def _save(self, text: str) -> None:
        """Write the file. If that fails after all, the text goes to stdout."""
        ended = text if text.endswith("\n") else f"{text}\n"
        try:
            with open(self._path, "wb" if self._force or not self._keeps_old_file else "xb") as file:
                file.write(ended.encode("utf-8", "replace"))
        except OSError as error:
            standard = StandardOutput()
            standard.write(text)
            standard.close()
            raise Problem(
                f"{self._path} could not be written ({error.strerror}); the answer is on stdout instead.",
                "Copy it from there, or make room and ask again.",
            ) from error

    @property
    def _keeps_old_file(self) -> bool:
        """Whether what is written stays at the path: there is a file or nothing yet, no device and no pipe."""
        return not os.path.lexists(self._path) or self._path.is_file()

    def _check(self) -> None:
        """Open the file as writing it later will, leaving its content, or its absence, as it is."""
        existed = os.path.lexists(self._path)
        if existed and self._keeps_old_file and not self._force:
            instead = "." if self._force is None else ", or replace it with --force."
            raise Problem(f"{self._path} exists already.", f"Choose another name{instead}")
        if existed and not (self._path.is_file() or self._path.is_dir()):
            return  # a device or a named pipe: opening it may block
        try:
            open(self._path, "ab").close()
            if not existed:
                self._path.unlink()
        except OSError as error:
            raise Problem(
                f"{self._path} can't be written: {error.strerror}.", "Choose another file with -o, or leave -o out."
            ) from error


def check_directory(path: Path, flag: str = "--out") -> None:
    """Raise :class:`Problem` unless files can be created in ``path``, or ``path`` itself created."""
    existing = next(parent for parent in (path, *path.absolute().parents) if os.path.lexists(parent))
    usable = existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
    why = "" if usable else f"{existing} is not a folder you may write to."
    try:
        (path / "block-1.txt").lstat()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            why = "its name is too long."
    if why:
        raise Problem(f"Nothing can be saved in {path}: {why}", f"Choose another folder with {flag}.")
