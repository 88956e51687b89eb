"""A code block as a program: in a process group of its own that ends as a whole, in an empty folder, without stdin, a
terminal, a screen or the user's secrets, for a limited time and with limited output. It is no sandbox: what runs can
read the user's files, so front ends ask first. No Textual; :func:`start` returns at once, ``wait`` blocks."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, Literal, get_args
from uuid import uuid4

from ..failures import Failure
from ..platforms import LIMITED, NO_PROGRAMS, apart, kill, processes, user
from ..text.counted import counted
from ..text.fences import CodeBlock

SECONDS = 10.0
"""Seconds that a program may run."""
KEPT = 64 * 1024
"""Bytes of output that are kept: the first half and the last."""
FLOOD = 64 * 1024 * 1024
"""Bytes of output after which the program is ended."""
MEMORY, FILE_SIZE, PROCESSES = 2 << 30, 64 << 20, 256
"""Bytes of address space, bytes of one file, and processes beside those that the user has already."""
LANGUAGES = ("python", "py", "python3")
_KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT")
_MARK = "DFLASH_CHAT_RUN"
Ending = Literal["ended", "timeout", "stopped", "flooded"]


class RunError(Failure):
    """A block that can't be run. ``hint`` says what to do."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a program did."""

    block: int
    """The number of the code block in its answer."""
    ending: Ending
    exit_code: int | None
    """The program's exit code; None where a signal ended it."""
    seconds: float
    output: str
    """stdout and stderr as they came; not made harmless yet."""

    @property
    def words(self) -> str:
        """How it ended, for people."""
        if self.ending == "timeout":
            return f"stopped after {SECONDS:.0f} s"
        if self.ending == "stopped":
            return "stopped"
        if self.ending == "flooded":
            return f"stopped: it wrote more than {FLOOD >> 20} MB"
        return "killed by a signal" if self.exit_code is None else f"exit code {self.exit_code}"

    @property
    def summary(self) -> str:
        """A line that says which block ran, how it ended, and how long it took."""
        lines = counted(len(self.output.splitlines()), "line")
        return f"block {self.block} ran · {self.words} · {self.seconds:.1f} s · {lines}"

    def to_line(self) -> dict[str, Any]:
        """The result as the fields of a line of a session file."""
        facts = {"block": self.block, "ending": self.ending, "exit_code": self.exit_code}
        return {**facts, "seconds": round(self.seconds, 3), "output": self.output}

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> RunResult:
        """The result that a line of a session file tells. Raises ``KeyError``, ``TypeError`` or ``ValueError``."""
        code, output = line["exit_code"], line["output"]
        if line["ending"] not in get_args(Ending) or not isinstance(output, str) or not isinstance(code, int | None):
            raise TypeError("that is no program's end")
        return cls(int(line["block"]), line["ending"], code, float(line["seconds"]), output)


def runnable(block: CodeBlock) -> bool:
    """Whether a code block is Python, which is all that is run."""
    return block.language in LANGUAGES or (not block.language and (block.filename or "").endswith(".py"))


def start(block: CodeBlock, seconds: float = SECONDS) -> Running:
    """Run a block of Python. Raises :class:`RunError` where it is none, or nothing can be started."""
    if not runnable(block):
        what = block.language or "text"
        raise RunError(f"Block {block.number} is {what}; only Python is run.", "/save keeps it.")
    if NO_PROGRAMS:
        raise RunError(NO_PROGRAMS, "/save keeps the block; run it yourself.")
    try:
        return Running(block, seconds)
    except OSError as error:
        raise RunError(f"Python could not be started: {error.strerror or error}.", "/save keeps the block.") from error


class Running:
    """A code block that runs as a program."""

    def __init__(self, block: CodeBlock, seconds: float) -> None:
        self._number = block.number
        self._stop = Event()
        self._folder = tempfile.TemporaryDirectory(prefix="dflash-chat-run-", ignore_cleanup_errors=True)
        self._mark = uuid4().hex
        self._started = time.monotonic()
        self._deadline = self._started + seconds
        try:
            self._process = self._popen(block, seconds)
        except BaseException:
            self._folder.cleanup()
            raise

    def _popen(self, block: CodeBlock, seconds: float) -> subprocess.Popen[bytes]:
        home = Path(self._folder.name)
        program = home / "main.py"
        program.write_text(block.content, encoding="utf-8", errors="replace")
        limits = (int(seconds) + 2, FILE_SIZE, _processes() + PROCESSES, MEMORY)
        return subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", LIMITED, str(program), *map(str, limits)],
            cwd=home,
            env=_environment(home, self._mark),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            close_fds=True,
            **apart(),  # its own group, and no terminal that it could open
        )

    def stop(self) -> None:
        """End it; ``wait`` returns soon. From any thread."""
        self._stop.set()

    def wait(self) -> RunResult:
        """Wait until the program has ended, at the latest until its time is up; returns what it did. To be called
        once."""
        output = _Output()
        try:
            ending = self._watch(output)
        finally:
            self._kill()
            code = self._process.wait()
            self._folder.cleanup()
        seconds = time.monotonic() - self._started
        exit_code = code if ending == "ended" and code >= 0 else None
        return RunResult(self._number, ending, exit_code, seconds, output.text)

    def _watch(self, output: _Output) -> Ending:
        """Take in output until the process has ended; returns how it did. Children of it that hold the pipe don't keep
        anybody waiting."""
        pipe = self._process.stdout
        assert pipe is not None
        os.set_blocking(pipe.fileno(), False)
        with pipe, selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while True:
                ended = self._process.poll() is not None
                if selector.select(0.0 if ended else 0.05):
                    piece = os.read(pipe.fileno(), 1 << 16)
                    output.add(piece)
                    if not piece and not ended:
                        ended = self._ends_soon()
                    elif piece and output.length <= FLOOD and not self._over:
                        continue
                if self._stop.is_set():
                    return "stopped"
                if output.length > FLOOD:
                    return "flooded"
                if ended:
                    return "ended"
                if self._over:
                    return "timeout"

    @property
    def _over(self) -> bool:
        return time.monotonic() > self._deadline or self._stop.is_set()

    def _ends_soon(self) -> bool:
        """Whether the program ends, now that it has closed its output; it may go on without."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0.05)
            return True
        return False

    def _kill(self) -> None:
        """Kill the program's process group, and what has left it, which the mark in its environment tells, until
        nothing new appears."""
        for _ in range(50):
            kill(self._process.pid, group=True)
            strays = _marked(self._mark)
            if not strays:
                return
            for pid in strays:
                kill(pid)


class _Output:
    """The beginning and the end of what was written."""

    def __init__(self) -> None:
        self._head, self._tail = bytearray(), bytearray()
        self.length = 0

    def add(self, piece: bytes) -> None:
        self.length += len(piece)
        room = KEPT // 2 - len(self._head)
        self._head += piece[:room]
        self._tail += piece[room:]
        if len(self._tail) > KEPT:
            del self._tail[: len(self._tail) - KEPT // 2]

    @property
    def text(self) -> str:
        tail = bytes(self._tail[-(KEPT // 2) :])
        left_out = self.length - len(self._head) - len(tail)
        gap = f"\n… {counted(left_out, 'byte')} left out …\n" if left_out else ""
        return self._head.decode("utf-8", "replace") + gap + tail.decode("utf-8", "replace")


def _environment(home: Path, mark: str) -> dict[str, str]:
    variables = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    return {**variables, "HOME": str(home), "TMPDIR": str(home), "PYTHONIOENCODING": "utf-8",
            "PYTHONDONTWRITEBYTECODE": "1", "MPLBACKEND": "Agg", _MARK: mark}  # fmt: skip


def _processes() -> int:
    """Threads and processes that the user has, which the limit counts; 0 where nobody tells."""
    own, count = user(), 0
    for entry in processes():
        with suppress(OSError):
            if entry.stat().st_uid == own:
                count += len(os.listdir(f"{entry.path}/task"))
    return count


def _marked(mark: str) -> list[int]:
    """The processes with this mark, but zombies, whose environment is empty. None where the system doesn't tell."""
    wanted, marked = f"{_MARK}={mark}".encode(), []
    for entry in processes():
        with suppress(OSError), open(f"{entry.path}/environ", "rb") as environment:
            if wanted in environment.read(1 << 16):
                marked.append(int(entry.name))
    return marked
