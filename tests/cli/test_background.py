"""The terminal's background, asked of a terminal that the test plays."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
import time

import pytest

from dflash_tui.cli.terminal.background import PATIENCE, QUESTION, terminal_background

PROGRAM = """
import fcntl, select, sys, termios, time
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from dflash_tui.cli.terminal.background import terminal_background
with terminal_background() as background:
    select.select([0], [], [], float(sys.argv[1]))  # the imports
    began = time.monotonic()
    dark = background.dark if sys.argv[2] == "True" else None
    waited = time.monotonic() - began
echo = bool(termios.tcgetattr(0)[3] & termios.ECHO)
left = len(select.select([0], [], [], 0)[0])
print(f"dark={dark} waited={waited:.3f} echo={echo} left={left} end", flush=True)
"""


def ask(reply: bytes, terminal: str = "xterm-256color", wanted: bool = True) -> tuple[dict[str, str], bool]:
    """What the program found out, and whether it asked at all."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "30" if reply else "0.05", str(wanted)],
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "TERM": terminal, "SSH_CONNECTION": ""},
    )
    os.close(theirs)
    guard = threading.Timer(60, process.kill)
    guard.start()
    seen, answered = b"", False
    try:
        while b" end" not in seen:
            try:
                seen += os.read(ours, 4096)
            except OSError:  # the program is gone
                break
            if QUESTION in seen and not answered:
                answered = True
                os.write(ours, reply)
        assert process.wait() == 0, process.communicate()[1]
    finally:
        guard.cancel()
        process.stderr.close()
        os.close(ours)
    words = dict(word.split("=") for word in seen.split(b"dark=")[1].decode().replace(" end", "").split()[1:])
    return {"dark": seen.split(b"dark=")[1].split()[0].decode(), **words}, answered


@pytest.mark.terminals
@pytest.mark.parametrize(
    ("reply", "dark"),
    [
        (b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?62;4c", "False"),
        (b"\x1b]11;rgb:1010/1010/1818\x07\x1b[?62;4c", "True"),
        (b"\x1b[?62;4c", "None"),
    ],
)
def test_a_terminal_is_asked_and_left_as_it_was(reply: bytes, dark: str) -> None:
    found, asked = ask(reply)
    assert asked and found["dark"] == dark and found["echo"] == "True"
    assert float(found["waited"]) < 1.0, "the reply was there before it was wanted"


@pytest.mark.terminals
def test_a_reply_that_nobody_wanted_does_not_reach_the_prompt() -> None:
    found, asked = ask(b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?62;4c", wanted=False)
    assert asked and found["left"] == "0"


@pytest.mark.terminals
def test_a_mute_terminal_costs_little() -> None:
    found, asked = ask(b"")
    assert asked and found["dark"] == "None" and found["echo"] == "True"
    assert float(found["waited"]) < PATIENCE + 1.0


def test_a_terminal_that_can_not_answer_is_not_asked() -> None:
    assert ask(b"", "dumb")[1] is False


def test_without_a_terminal_nothing_happens() -> None:
    began = time.monotonic()
    with terminal_background() as background:
        assert background.dark is None
    assert time.monotonic() - began < 1.0
