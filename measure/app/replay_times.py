"""``python -m measure.app.replay_times [start] [seeks]``: how long a replay takes to be there, and to be elsewhere.

In a pseudo-terminal of 120x36, from the start of the command or the key to the bytes that a person would see. Seeks go
through a trace of 20 000 tokens.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import time
from pathlib import Path

from tests.app.terminal import Terminal

from .soak import QUIT, SIZE, record
from .soaked import percentile

START = "from dflash_tui.cli.main import program; import sys; sys.argv = ['dflash-chat', 'replay', {what!r}]; program()"
STARTS, SEEKS = 10, 60
QUIET = 0.06
"""Seconds without a byte after which a frame is over."""
SECONDS = 20.0
"""Of an answer at 1000 tokens per second."""
HOME, END, LEFT, RIGHT, PAGE_UP, PAGE_DOWN, STEP_VIEW = (
    "\x1b[H",
    "\x1b[F",
    "\x1b[D",
    "\x1b[C",
    "\x1b[5~",
    "\x1b[6~",
    "\x1bOR",
)
FIRST_FRAME_MS, SEEK_MS = 700.0, 50.0


def first_frame(what: str) -> float:
    """Milliseconds until the screen stands."""
    started = time.perf_counter()
    with Terminal(START.format(what=what), SIZE) as terminal:
        terminal.wait_for("replay of")
        frame = time.perf_counter() - started
        terminal.send(QUIT)
        terminal.wait_for_exit()
    return 1000 * frame


class Seeker:
    """Presses keys of a replay that stands."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        terminal.wait_for("round ")
        terminal.send(" ")
        self.settle()

    def press(self, keys: str) -> float:
        """Milliseconds from the keys to the last byte of what they bring. Raises ``TimeoutError`` without any."""
        self.terminal.output = ""
        sent = last = time.perf_counter()
        self.terminal.send(keys)
        while time.perf_counter() - max(last, sent) < (QUIET if self.terminal.output else 5.0):
            before = len(self.terminal.output)
            self.terminal.read(0.001)
            if len(self.terminal.output) > before:
                last = time.perf_counter()
        if not self.terminal.output:
            raise TimeoutError(f"{keys!r} brought nothing")
        return 1000 * (last - sent)

    def settle(self) -> None:
        while self.terminal.output:
            self.terminal.output = ""
            self.terminal.read(0.5)


def seeks(path: Path) -> dict[str, list[float]]:
    """Milliseconds of each kind of jump."""
    chance = random.Random(1)
    with Terminal(START.format(what=str(path)), SIZE) as terminal:
        seeker = Seeker(terminal)
        found = {"End, Home": [seeker.press(key) for _ in range(SEEKS // 4) for key in (END, HOME)]}
        found["Page Down, Page Up"] = [seeker.press(key) for key in (*[PAGE_DOWN] * 12, *[PAGE_UP] * 12)]
        seeker.press(HOME)
        found["one round on"] = [seeker.press(RIGHT) for _ in range(12)]
        seeker.press(END)
        terminal.send(STEP_VIEW)
        seeker.settle()
        found["any round, by number"] = []
        for _ in range(SEEKS // 2):
            terminal.send(str(chance.randrange(100, 1000)))
            seeker.settle()
            found["any round, by number"].append(seeker.press("\r"))
        found["rejections"] = [seeker.press(key) for key in (*"{" * 12, *"}" * 12)]
        terminal.send(QUIT)
        terminal.wait_for_exit()
    return found


def show(name: str, found: list[float], limit: float) -> None:
    middle, late, most = statistics.median(found), percentile(found, 95), max(found)
    verdict = "ok" if late <= limit else "MISSED"
    print(f"{name:<26}p50 {middle:6.1f}   p95 {late:6.1f}   max {most:6.1f}   <= {limit:.0f}   {verdict}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", help="start, seeks; both without")
    wanted = parser.parse_args().what or ["start", "seeks"]
    os.environ.setdefault("DFLASH_CHAT_CONFIG", "")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DFLASH_CHAT_STATE"] = folder
        path = Path(folder) / "long.dft"
        record(path, SECONDS)
        if "start" in wanted:
            for what in ("demo", str(path)):
                show(f"first frame, {Path(what).name}", [first_frame(what) for _ in range(STARTS)], FIRST_FRAME_MS)
        if "seeks" in wanted:
            for name, found in seeks(path).items():
                show(name, found, SEEK_MS)


if __name__ == "__main__":
    main()
