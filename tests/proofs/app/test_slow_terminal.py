"""A terminal that reads slowly, as over a thin line: frames are left out, so that keys are not answered late."""

from __future__ import annotations

import time
from pathlib import Path

from support.terminal import Terminal

from .test_process import chat

BYTES_PER_SECOND = 20_000
"""Less than an answer takes at thirty frames a second."""
PAUSE = 0.05


def take_slowly(terminal: Terminal, seconds: float, until: str = "") -> float:
    """Take what is written, until a text came or for so long; returns the seconds that took."""
    began = time.monotonic()
    while time.monotonic() - began < seconds and not (until and until in terminal.output):
        terminal.take(int(BYTES_PER_SECOND * PAUSE))
        time.sleep(PAUSE)
    return time.monotonic() - began


def test_a_key_is_answered_soon_on_a_slow_line(tmp_path: Path) -> None:
    with chat(tmp_path, "ScriptedEngine(emit, answer=PAGE * 200, round_seconds=0.01, device='cuda')") as terminal:
        terminal.wait_for("ready")
        terminal.send("go on\r")
        terminal.wait_for("doctype")
        take_slowly(terminal, 3)
        terminal.output = ""
        terminal.type("ж")
        assert take_slowly(terminal, 10, until="ж") < 4
        terminal.send("\x11")
        assert terminal.wait_for_exit() == 0
