"""``python -m measure.app.waits [WAIT ...]``: how long a user waits for a first frame, a stop, a key behind a paste.

Measures in a pseudo-terminal of 120x36, from the key, or the start of the program, to the bytes that a person would
see."""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from measure.quick import parse
from support.terminal import Terminal

from .soak import CLEAR_LINE, CODE, QUIT, SIZE, ScreenReports, User

PROGRAM = "from dflash_tui.cli.main import program; import sys; sys.argv = ['dflash-chat']; program()"
BUNDLED_PAIR, TAPE = "engine_source(EngineOptions())(emit)", "Tape(emit, seconds=3600)"
STARTS, STOPS, PASTES = 10, 20, 5
ESCAPE, NEW_CHAT = "\x1b", "\x0e"
PASTE = "\x1b[200~{}\x1b[201~"
LONG_LINE, FIVE_MEGABYTES = "x" * 200_000, ("x" * 79 + "\r") * (5_000_000 // 80)


@contextmanager
def observed(source: str) -> Iterator[tuple[User, ScreenReports]]:
    """Runs the chat on ``source``; once it is ready, yields a user and its reports."""
    reader, writer = os.pipe()
    with Terminal(
        CODE.format(source=source, report=writer, log="SessionLog.create()"), SIZE, pass_fds=(writer,)
    ) as terminal:
        os.close(writer)
        user, reports = User(terminal), ScreenReports(reader)
        reports.wait_for("ready", user, 120)
        yield user, reports
        terminal.send(QUIT)
        terminal.wait_for_exit()
    os.close(reader)


def first_frames(most: int) -> list[float]:
    """Milliseconds from the start of the program to its first frame, torch not imported yet. One start goes before,
    which may have to compile."""
    waits = []
    for _ in range(min(STARTS, most) + 1):
        started = time.perf_counter()
        with Terminal(PROGRAM, SIZE) as terminal:
            terminal.wait_for("F1 help")
            waits.append(1000 * (time.perf_counter() - started))
    return waits[1:]


def stops(most: int) -> list[float]:
    """Milliseconds from Esc to the sight of a stop, with the bundled pair at work."""
    waits = []
    with observed(BUNDLED_PAIR) as (user, reports):
        for number in range(min(STOPS, most)):
            user.terminal.send("Write a page with a drone swarm\r")
            reports.wait_for("streaming", user, 60)
            user.watch(0.2 + number / 100)  # each time at another moment of a round, and of a frame
            waits.append(user.press(ESCAPE, "⏹ stopped"))
            reports.wait_for("done", user, 60)
            user.terminal.send(NEW_CHAT)
            user.watch(0.2)
    return waits


def pastes(most: int, pasted: str, seen: str, streaming: bool) -> list[float]:
    """Milliseconds from the last byte of a paste to the sight of a letter typed behind it."""
    waits = []
    with observed(TAPE) as (user, reports):
        if streaming:
            user.terminal.send("go on\r")
            reports.wait_for("streaming", user, 60)
        for letter in "бгдёж"[: min(PASTES, most)]:
            user.watch(0.5)
            user.terminal.send(PASTE.format(pasted))
            waits.append(user.press(letter, letter))
            user.terminal.wait_for(seen)
            user.terminal.send(CLEAR_LINE)
    return waits


WAITS: dict[str, tuple[float, Callable[[int], list[float]]]] = {
    "first frame": (700.0, first_frames),
    "stopping": (100.0, stops),
    "paste of 5 MB": (300.0, lambda most: pastes(most, FIVE_MEGABYTES, "Paste too large", streaming=False)),
    "paste of 5 MB, streaming": (300.0, lambda most: pastes(most, FIVE_MEGABYTES, "Paste too large", streaming=True)),
    "line of 200 000": (300.0, lambda most: pastes(most, LONG_LINE, "Pasted", streaming=False)),
    "line of 200 000, streaming": (300.0, lambda most: pastes(most, LONG_LINE, "Pasted", streaming=True)),
}
"""By kind of wait: the milliseconds allowed, and the function that measures so many at most."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("waits", nargs="*", help=", ".join(WAITS))
    parser.add_argument("--most", type=int, default=max(STARTS, STOPS, PASTES), help="waits of a kind")
    options = parse(parser, "stopping --most 2")
    os.environ.setdefault("DFLASH_CHAT_CONFIG", "")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # otherwise every start compiles what was edited last
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DFLASH_CHAT_STATE"] = folder
        for name in options.waits or WAITS:
            limit, take = WAITS[name]
            taken = take(options.most)
            middle, most = statistics.median(taken), max(taken)
            verdict = f"<= {limit:.0f} ms   {'ok' if most <= limit else 'MISSED'}"
            print(f"{name:<28}p50 {middle:6.0f}   max {most:6.0f}   {verdict}", flush=True)


if __name__ == "__main__":
    main()
