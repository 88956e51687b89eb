"""The command line as another process, on a script."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from subprocess import DEVNULL, PIPE, STDOUT
from threading import Thread
from typing import BinaryIO

from ..forked import Forked
from .scripted import play


class Program(Forked):
    """As much of :class:`subprocess.Popen` as tests use. ``stdin``, ``stdout`` and ``stderr``: a descriptor, ``PIPE``,
    ``DEVNULL`` or ``STDOUT``."""

    def __init__(self, words: Sequence[str], stdin: int, stdout: int, stderr: int, more: Mapping[str, str]) -> None:
        self.stdin: BinaryIO | None = None
        self.stdout: BinaryIO | None = None
        self.stderr: BinaryIO | None = None
        ends: list[int] = []
        for name, given in (("stdin", stdin), ("stdout", stdout), ("stderr", stderr)):
            if given == PIPE:
                reader, writer = os.pipe()
                setattr(self, name, os.fdopen(writer, "wb") if name == "stdin" else os.fdopen(reader, "rb", 0))
                ends.append(reader if name == "stdin" else writer)
            elif given == STDOUT:
                ends.append(os.dup(ends[1]))
            else:
                ends.append(os.open(os.devnull, os.O_RDWR) if given == DEVNULL else os.dup(given))
        super().__init__(play, *words, streams=ends, environment=more)
        for end in ends:
            os.close(end)

    def communicate(self, timeout: float) -> tuple[bytes, bytes]:
        """All that is still to be read of its output, and of its errors."""
        said = [b"", b""]

        def read(place: int, stream: BinaryIO | None) -> None:
            said[place] = b"" if stream is None else stream.read()

        readers = [Thread(target=read, args=each) for each in enumerate((self.stdout, self.stderr))]
        for reader in readers:
            reader.start()
        self.wait(timeout)
        for reader in readers:
            reader.join(timeout)
        return said[0], said[1]

    def end(self) -> None:
        self.kill()
        self.wait()
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None and not stream.closed:
                with suppress(BrokenPipeError):
                    stream.close()


@contextmanager
def program(
    *words: str,
    stdin: int = DEVNULL,
    stdout: int = PIPE,
    stderr: int = PIPE,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Program]:
    """Runs what ``python -m tests.cli.scripted`` with these words does; it ends with the test."""
    process = Program(words, stdin, stdout, stderr, environment or {})
    try:
        yield process
    finally:
        process.end()
