"""The chat in a browser: textual-serve starts the program on pipes and speaks in packets with it."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

HELLO = b"__GANGLION__\n"
"""What the program says once it has understood what is at the other end."""


class Served:
    """A program as textual-serve runs it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.written = b""

    def wait_for(self, text: bytes, seconds: float = 60.0) -> None:
        """Until ``text`` was written; forgets everything up to it."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + seconds
        while text not in self.written:
            assert time.monotonic() < deadline and self.process.poll() is None, self.written[-2000:]
            if select.select([self.process.stdout], [], [], 0.1)[0]:
                self.written += os.read(self.process.stdout.fileno(), 1 << 16)
        self.written = self.written.partition(text)[2]

    def send(self, kind: bytes, payload: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(kind + len(payload).to_bytes(4, "big") + payload)
        self.process.stdin.flush()


@contextmanager
def served(*arguments: str) -> Iterator[Served]:
    environment = os.environ | {
        "TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver",
        "COLUMNS": "100",
        "ROWS": "30",
    }
    program = "import sys; from dflash_tui.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        try:
            yield Served(process)
        finally:
            process.kill()


def test_a_question_from_a_browser_is_answered() -> None:
    with served("--max-new-tokens", "20") as program:
        program.wait_for(HELLO)
        program.wait_for(b"ready")
        program.send(b"D", b"What is speculative decoding?\r")
        program.wait_for(b"tokens a round")
        program.send(b"M", json.dumps({"type": "resize", "width": 60, "height": 18}).encode())
        program.send(b"M", json.dumps({"type": "quit"}).encode())
        assert program.process.wait(60) == 0


def test_lessons_open_there_too() -> None:
    with served("lesson") as program:
        program.wait_for(HELLO)
        program.wait_for(b"1 of 10")
        program.send(b"M", json.dumps({"type": "quit"}).encode())
        assert program.process.wait(60) == 0
