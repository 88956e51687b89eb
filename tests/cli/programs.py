"""The command line as another process, on a script: forked from one that has imported everything, for its pipes,
signals and exit codes are the same, and importing takes twenty times as long as what a test looks at. What a program
does at its very beginning and end is looked at where a new interpreter starts."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from multiprocessing.reduction import DupFd
from subprocess import DEVNULL, PIPE, STDOUT
from threading import Thread
from typing import BinaryIO

_forking = get_context("forkserver")
_forking.set_forkserver_preload(["tests.cli.scripted"])


class Program:
    """As much of :class:`subprocess.Popen` as tests use. ``stdin``, ``stdout`` and ``stderr``: a descriptor, ``PIPE``,
    ``DEVNULL`` or ``STDOUT``."""

    def __init__(self, words: Sequence[str], stdin: int, stdout: int, stderr: int, more: Mapping[str, str]) -> None:
        self.stdin: BinaryIO | None = None
        self.stdout: BinaryIO | None = None
        self.stderr: BinaryIO | None = None
        ends = []
        for name, given in (("stdin", stdin), ("stdout", stdout), ("stderr", stderr)):
            if given == PIPE:
                reader, writer = os.pipe()
                setattr(self, name, os.fdopen(writer, "wb") if name == "stdin" else os.fdopen(reader, "rb", 0))
                ends.append(reader if name == "stdin" else writer)
            elif given == STDOUT:
                ends.append(os.dup(ends[1]))
            else:
                ends.append(os.open(os.devnull, os.O_RDWR) if given == DEVNULL else os.dup(given))
        places = (os.getcwd(), {**os.environ, **more})
        self._process: ForkServerProcess = _forking.Process(target=_run, args=(words, [*map(DupFd, ends)], *places))
        self._process.start()
        for end in ends:
            os.close(end)

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def wait(self, seconds: float) -> int:
        self._process.join(seconds)
        assert self._process.exitcode is not None, "it goes on"
        return self._process.exitcode

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
        self._process.kill()
        self._process.join()
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
    """Runs ``python -m tests.cli.scripted`` with these words; it ends with the test."""
    process = Program(words, stdin, stdout, stderr, environment or {})
    try:
        yield process
    finally:
        process.end()


def _run(words: Sequence[str], ends: Sequence[DupFd], folder: str, environment: Mapping[str, str]) -> None:
    """In the forked process, which becomes what a new one would be."""
    for place, end in enumerate(ends):
        os.dup2(end.detach(), place)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
    from .scripted import play

    sys.exit(play(*words))
