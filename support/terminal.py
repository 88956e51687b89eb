"""A program in a pseudo-terminal: what it writes, byte by byte, and bytes for it.

``tests/proofs/e2e/terminal.py`` shows what a person would see; here a test sees what tmux would swallow, and decides
which bytes arrive when.
"""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time

from support.forked import Forked


def _run(code: str) -> None:
    exec(code, {"__name__": "__main__"})


class Terminal:
    """Runs Python ``code`` with a terminal of ``size`` (columns, rows) as its standard streams; in a ``fresh``
    interpreter, which inherits ``pass_fds``, or forked from one that knows the program's modules."""

    def __init__(
        self, code: str, size: tuple[int, int] = (100, 30), fresh: bool = False, pass_fds: tuple[int, ...] = ()
    ) -> None:
        self.output = ""
        self.answers = False
        """It says where its cursor is, when asked."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._master, slave = pty.openpty()
        self._set_size(*size)
        looks = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self.process: subprocess.Popen[bytes] | Forked
        if fresh or pass_fds:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=slave, stdout=slave, stderr=slave, env={**os.environ, **looks}, pass_fds=pass_fds,
            )  # fmt: skip
        else:
            self.process = Forked(_run, code, streams=[slave] * 3, environment=looks)
        os.close(slave)

    def _set_size(self, width: int, height: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)

    def send(self, data: str) -> None:
        self.write(data.encode())

    def write(self, data: bytes) -> None:
        """Write everything, reading meanwhile: a terminal's buffer is a few kilobytes."""
        left = data
        while left:
            self.read(0.0)
            if select.select([], [self._master], [], 1.0)[1]:
                left = left[os.write(self._master, left[:4096]) :]

    def wait_for(self, text: str, seconds: float = 60.0) -> None:
        """Until ``text`` was written since the last call; forgets everything up to it."""
        deadline = time.monotonic() + seconds
        while text not in self.output:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no {text!r} in {self.output[-2000:]!r}")
            self.read(0.05)
        self.output = self.output.partition(text)[2]

    def wait_for_exit(self, seconds: float = 60.0) -> int:
        deadline = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read(0.05)
        self.read(0.0)
        return self.process.wait(0.1)

    def read(self, seconds: float) -> None:
        """Take what was written; wait at most ``seconds`` for it."""
        while select.select([self._master], [], [], seconds)[0] and self.take(1 << 16):
            seconds = 0.0

    def take(self, most: int) -> bool:
        """Take at most so many bytes; False when there are none."""
        if not select.select([self._master], [], [], 0.0)[0]:
            return False
        try:
            data = os.read(self._master, most)
        except OSError:  # the other end is closed
            return False
        self.output += self._decoder.decode(data)
        if self.answers:
            os.write(self._master, b"\x1b[1;1R" * data.count(b"\x1b[6n"))
        return bool(data)
