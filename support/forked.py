"""Programs as other processes, forked from one that has imported everything: pipes, terminals, signals and exit codes
are those of a new interpreter, and importing takes twenty times as long as what a test looks at. What a program does at
its very beginning and end, and what it imports, is looked at where a new interpreter starts."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing import forkserver, get_context
from multiprocessing.context import ForkServerProcess
from multiprocessing.reduction import DupFd
from subprocess import DEVNULL, PIPE, STDOUT
from threading import Thread
from typing import BinaryIO, Protocol

Environment = Mapping[str, str | None]
NOTHING: Environment = {}
_forking = get_context("forkserver")
_forking.set_forkserver_preload(["support.scripted", "dflash_tui.app.main"])


class Forked:
    """A process that calls ``run``, on the top level of a module, with ``arguments``. ``streams`` are the descriptors
    of its stdin, stdout and stderr; ``environment`` is added to this process's own, None takes a variable out."""

    def __init__(
        self, run: Callable[..., object], *arguments: object, streams: Sequence[int], environment: Environment
    ) -> None:
        known = {name: value for name, value in {**os.environ, **environment}.items() if value is not None}
        places = (os.getcwd(), known, [*map(DupFd, streams)])
        self._process: ForkServerProcess = _forking.Process(target=_become, args=(places, run, arguments))
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()

    def wait(self, seconds: float | None = None) -> int:
        self._process.join(seconds)
        assert self._process.exitcode is not None, "it goes on"
        return self._process.exitcode


class Piped(Forked):
    """The same with as much of :class:`subprocess.Popen` as tests use. ``stdin``, ``stdout`` and ``stderr``: a
    descriptor, ``PIPE``, ``DEVNULL`` or ``STDOUT``."""

    def __init__(
        self,
        run: Callable[..., object],
        *arguments: object,
        stdin: int = DEVNULL,
        stdout: int = PIPE,
        stderr: int = PIPE,
        environment: Environment = NOTHING,
    ) -> None:
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
        super().__init__(run, *arguments, streams=ends, environment=environment)
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


def end_server() -> None:
    """What programs cost is known of a server that has ended and was waited for."""
    forkserver._forkserver._stop()  # type: ignore[attr-defined]


class _Stream(Protocol):
    """A descriptor on its way into another process: what ``DupFd`` makes."""

    def detach(self) -> int: ...


def _become(
    places: tuple[str, Mapping[str, str], Sequence[_Stream]], run: Callable[..., object], arguments: Sequence[object]
) -> None:
    """In the forked process, which becomes what a new one would be."""
    folder, environment, streams = places
    for number, stream in enumerate(streams):
        os.dup2(stream.detach(), number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
    vars(sys).update(__stdin__=sys.stdin, __stdout__=sys.stdout, __stderr__=sys.stderr)
    sys.exit(run(*arguments))  # type: ignore[arg-type]
