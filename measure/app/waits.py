"""``python -m measure.app.waits [WAIT ...]``: how long a user waits for a first frame, a stop, a key, a key behind a
paste.

Measures in a pseudo-terminal of 120x36, from the key, or the start of the program, to the bytes that a person would
see."""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from measure.quick import parse
from support.terminal import Terminal

SIZE = (120, 36)
CLEAR_LINE, QUIT = "\x15", "\x11"
CODE = """
import asyncio
from pathlib import Path
from dflash_tui.app.application import ChatApp
from dflash_tui.core.desk.event_queue import EventQueue
from dflash_tui.core.sessions.sessions import SessionLog
from dflash_tui.sources import engine_source
from engine.commands import EngineOptions, GenerationSettings
from support.scripted_engine import PAGE, ScriptedEngine

class Told(ChatApp):
    def on_ready(self):  # in addition to ChatApp's: Textual calls both
        self.run_worker(self.follow())

    async def follow(self):
        reducer = self.chat_screen.chat.reducer
        await self.tell("ready", lambda: reducer.ready)
        while True:
            await self.tell("streaming", lambda: reducer.busy)
            await self.tell("done", lambda: not reducer.busy)

    async def tell(self, state, reached):
        while not reached():
            await asyncio.sleep(0.02)
        report.write(state + "\\n")

queue = EventQueue(SessionLog.create())
with open({report}, "w", buffering=1) as report:
    app = Told(GenerationSettings(), Path("dflash-out"), queue, lambda emit: {source})
    app.run()
    app.chat_screen.join_engine(3.0)
queue.log.close()
"""
"""The chat on a source, which writes a line when it is ready, when an answer begins, and when it is done."""
PROGRAM = "from dflash_tui.cli.main import program; import sys; sys.argv = ['dflash-chat']; program()"
BUNDLED_PAIR = "engine_source(EngineOptions())(emit)"
SCRIPTED = "ScriptedEngine(emit, answer=PAGE * 100, round_seconds=0.006, device='cuda')"
"""Some 1000 tokens a second. Beside a GPU the screen may draw as often as it likes."""
STARTS, STOPS, PASTES, KEYS = 10, 20, 5, 60
KEYS_AN_ANSWER, LETTERS = 4, "бгдёжзийлпф"
FEW = 20
"""Of so few waits all are to keep the limit, of more 95 in a hundred."""
ESCAPE, NEW_CHAT = "\x1b", "\x0e"
PASTE = "\x1b[200~{}\x1b[201~"
LONG_LINE, FIVE_MEGABYTES = "x" * 200_000, ("x" * 79 + "\r") * (5_000_000 // 80)


class User:
    """Types on the keyboard and watches the screen."""

    def __init__(self, terminal: Terminal, report: int) -> None:
        os.set_blocking(report, False)
        self.terminal, self._report, self._states = terminal, report, list[str]()

    def press(self, key: str, seen: str) -> float:
        """Presses a key; returns the milliseconds until ``seen`` is on the screen."""
        self.terminal.output = ""
        sent = time.perf_counter()
        self.terminal.send(key)
        while seen not in self.terminal.output:
            if time.perf_counter() - sent > 60:
                raise TimeoutError(f"{key!r} was pressed and {seen} never seen")
            self.terminal.read(0.001)
        return 1000 * (time.perf_counter() - sent)

    def wait_for(self, state: str, seconds: float) -> None:
        """Watches until the chat is ``ready``, ``streaming`` or ``done``."""
        deadline = time.monotonic() + seconds
        while state not in self._states:
            if time.monotonic() > deadline or self.terminal.process.poll() is not None:
                raise TimeoutError(f"the chat was never {state}: {self.terminal.output}")
            self.watch(0.05)
            with suppress(BlockingIOError):
                self._states += os.read(self._report, 1 << 16).decode().split()
        del self._states[: self._states.index(state) + 1]

    def watch(self, seconds: float) -> None:
        """Reads what is written for ``seconds``, as a terminal does."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.terminal.read(left)
            self.terminal.output = self.terminal.output[-2000:]


@contextmanager
def observed(source: str) -> Iterator[User]:
    """Runs the chat on ``source``; yields a user once it is ready."""
    reader, writer = os.pipe()
    with Terminal(CODE.format(source=source, report=writer), SIZE, pass_fds=(writer,)) as terminal:
        os.close(writer)
        user = User(terminal, reader)
        user.wait_for("ready", 120)
        yield user
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
    with observed(BUNDLED_PAIR) as user:
        for number in range(min(STOPS, most)):
            user.terminal.send("Write a page with a drone swarm\r")
            user.wait_for("streaming", 60)
            user.watch(0.2 + number / 100)  # each time at another moment of a round, and of a frame
            waits.append(user.press(ESCAPE, "⏹"))
            user.wait_for("done", 60)
            user.terminal.send(NEW_CHAT)
            user.watch(0.2)
    return waits


def pastes(most: int, pasted: str, seen: str, streaming: bool) -> list[float]:
    """Milliseconds from the last byte of a paste to the sight of a letter typed behind it."""
    waits = []
    with observed(SCRIPTED) as user:
        if streaming:
            user.terminal.send("go on\r")
            user.wait_for("streaming", 60)
        for letter in "бгдёж"[: min(PASTES, most)]:
            user.watch(0.5)
            user.terminal.send(PASTE.format(pasted))
            waits.append(user.press(letter, letter))
            user.terminal.wait_for(seen)
            user.terminal.send(CLEAR_LINE)
    return waits


def echoes(most: int, streaming: bool) -> list[float]:
    """Milliseconds from a letter to the sight of it, in a prompt that is empty before it, each at another moment of a
    frame; ``streaming``: while the bundled pair writes."""
    waits = []
    with observed(BUNDLED_PAIR if streaming else SCRIPTED) as user:
        for number in range(min(KEYS, most)):
            if streaming and number % KEYS_AN_ANSWER == 0:
                user.terminal.send(NEW_CHAT)
                user.watch(0.2)
                user.terminal.send("Write a page with a drone swarm\r")
                user.wait_for("streaming", 60)
            letter = LETTERS[number % len(LETTERS)]
            user.watch(0.1 + number % 7 / 100)
            waits.append(user.press(letter, letter))
            user.terminal.send(CLEAR_LINE)
            if streaming and number % KEYS_AN_ANSWER == KEYS_AN_ANSWER - 1:
                user.watch(0.1)
                user.terminal.send(ESCAPE)
                user.wait_for("done", 60)
    return waits


WAITS: dict[str, tuple[float, Callable[[int], list[float]]]] = {
    "first frame": (500.0, first_frames),
    "stopping": (100.0, stops),
    "key to echo": (35.0, lambda most: echoes(most, streaming=False)),
    "key to echo, streaming": (60.0, lambda most: echoes(most, streaming=True)),
    "paste of 5 MB": (300.0, lambda most: pastes(most, FIVE_MEGABYTES, "Paste too large", streaming=False)),
    "paste of 5 MB, streaming": (300.0, lambda most: pastes(most, FIVE_MEGABYTES, "Paste too large", streaming=True)),
    "line of 200 000": (300.0, lambda most: pastes(most, LONG_LINE, "Pasted", streaming=False)),
    "line of 200 000, streaming": (300.0, lambda most: pastes(most, LONG_LINE, "Pasted", streaming=True)),
}
"""By kind of wait: the milliseconds allowed, and the function that measures so many at most."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("waits", nargs="*", help=", ".join(WAITS))
    parser.add_argument("--most", type=int, default=KEYS, help="waits of a kind")
    options = parse(parser, "stopping --most 2")
    os.environ.setdefault("DFLASH_CHAT_CONFIG", "")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # otherwise every start compiles what was edited last
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DFLASH_CHAT_STATE"] = folder
        for name in options.waits or WAITS:
            limit, take = WAITS[name]
            taken = take(options.most)
            middle, most = statistics.median(taken), max(taken)
            late = most if len(taken) <= FEW else statistics.quantiles(taken, n=20)[-1]
            verdict = f"<= {limit:.0f} ms   {'ok' if late <= limit else 'MISSED'}"
            figures = f"p50 {middle:6.0f}   p95 {late:6.0f}   max {most:6.0f}   load {os.getloadavg()[0]:4.1f}"
            print(f"{name:<28}{figures}   {verdict}", flush=True)


if __name__ == "__main__":
    main()
