"""``python -m measure.app.soak [--seconds 60] [SCENE ...]``: does the screen keep up with 1000 tokens per second?

Plays a recorded answer in a loop into the real chat in a pseudo-terminal of 120x36, types, scrolls and resizes
meanwhile, and prints what that did to it beside what is allowed. How long a user waits for it: ``waits.py``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

from dflash_tui.core.sessions.sessions import SessionLog
from engine.events import PrefillDone, TurnStarted
from measure.quick import parse
from support.tape import READY, endless, recorded_steps
from support.terminal import Terminal

from .soaked import percentile

SIZE = (120, 36)
PAGE_UP, PAGE_DOWN, CLEAR_LINE, QUIT = "\x1b[5~", "\x1b[6~", "\x15", "\x11"
LETTERS = [chr(code) for code in range(0x400, 0x530) if chr(code).isprintable()]
"""Letters one cell wide that are in no recorded answer: where one appears it was typed."""
PAUSE = 0.2
"""Seconds between two actions of the user."""

LIMITS = {"lag p95 ms": 20.0, "lag p99 ms": 50.0, "CPU %": 50.0, "growth MB": 10.0, "echo p95 ms": 30.0}
"""What the chat has to stay below while an answer streams."""


@dataclass(frozen=True)
class Scene:
    """What plays, and what the user does meanwhile, every ``PAUSE``."""

    name: str
    source: str = "Tape(emit, seconds={seconds})"
    loaded: bool = False
    """Whether the first answer is a long one, and only the second is observed."""
    skipped: float = 0.0
    """Seconds of the trace that are skipped."""
    user: Callable[[User], None] = lambda user: user.type_letter()
    asked: bool = True
    server: str = ""
    """The dialect of a ``tape_server`` in a process of its own to which the chat is attached; empty plays the trace
    directly."""


class User:
    """Types on the keyboard and watches the screen."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.echoes: list[float] = []
        """Milliseconds between pressing each letter and seeing it."""
        self._letters = iter(cycle(LETTERS))
        self._typed = 0
        self._pages = cycle([PAGE_UP] * 15 + [PAGE_DOWN] * 15)
        self._sizes = cycle([(100, 30), (80, 24), (60, 18), SIZE])

    def type_letter(self) -> None:
        if self._typed and self._typed % 40 == 0:
            self.terminal.send(CLEAR_LINE)
            self.watch(0.2)
        letter = next(self._letters)
        self._typed += 1
        self.echoes.append(self.press(letter, letter))

    def press(self, key: str, seen: str) -> float:
        """Presses a key; returns the milliseconds until ``seen`` is on the screen."""
        self.terminal.output = ""
        sent = time.perf_counter()
        self.terminal.send(key)
        while seen not in self.terminal.output:
            if time.perf_counter() - sent > 5:
                raise TimeoutError(f"{key!r} was pressed and {seen} never seen")
            self.terminal.read(0.001)
        return 1000 * (time.perf_counter() - sent)

    def scroll(self) -> None:
        self.terminal.send(next(self._pages))

    def resize(self) -> None:
        self.terminal.resize(*next(self._sizes))

    def watch(self, seconds: float) -> None:
        """Reads what is written for ``seconds``, as a terminal does."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.terminal.read(left)
            self.terminal.output = self.terminal.output[-2000:]


LONG = "Tape(emit, seconds={seconds}, loaded=40_000)"
REPLAY = "from_step({{start}}, ReplaySource(Path({trace!r}), emit, {pace}))"
ATTACHED = "server_source(ServerAddress({address!r}))(emit)"
SCENES = (
    Scene("typing"),
    Scene("typing, attached to llama.cpp", ATTACHED, server="llama.cpp"),
    Scene("typing, attached to vLLM", ATTACHED, server="vllm"),
    Scene("typing after 40 000 tokens", LONG, loaded=True),
    Scene("scrolling back", LONG, loaded=True, user=User.scroll),
    Scene("resizing", LONG, loaded=True, user=User.resize),
    Scene("replay", REPLAY.format(trace="{trace}", pace=1.0), asked=False),
    Scene("replay after 40 000 tokens", REPLAY.format(trace="{trace}", pace=1.0), asked=False, skipped=40.0),
    Scene("replay at full pace", REPLAY.format(trace="{trace}", pace=1000.0), asked=False, user=User.scroll),
)

CODE = """
from pathlib import Path
from dflash_tui.sources import engine_source, server_source
from engine.commands import EngineOptions
from dflash_tui.core.sessions.sessions import SessionLog
from dflash_tui.core.settings.servers import ServerAddress
from dflash_tui.core.replay.replay_source import ReplaySource
from measure.app.soaked import run
from support.tape import Tape
def from_step(step, source):
    source.seek(step)
    return source
run(lambda emit: {source}, {report}, {log})
"""


class ScreenReports:
    """Reads the lines that the observed process writes."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor, self._text = descriptor, ""

    def wait_for(
        self, at: str, user: User, seconds: float, doing: Callable[[User], None] = lambda _: None
    ) -> dict[str, Any]:
        """The next report ``at`` that point. The user goes on ``doing`` something until it comes."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and user.terminal.process.poll() is None:
            with suppress(BlockingIOError):
                self._text += os.read(self._descriptor, 1 << 24).decode()
            while "\n" in self._text:
                line, _, self._text = self._text.partition("\n")
                fact: dict[str, Any] = json.loads(line)
                if fact["at"] == at:
                    return fact
            doing(user)
            user.watch(PAUSE)
        raise TimeoutError(f"the chat was never {at}: {user.terminal.output}")


@contextmanager
def served(dialect: str, seconds: float) -> Iterator[str]:
    """Runs a server that plays for ``seconds``; yields its address, empty without a ``dialect``."""
    if not dialect:
        yield ""
        return
    command = [sys.executable, "-m", "measure.app.tape_server", dialect, "--seconds", str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        finally:
            server.terminate()


def play(scene: Scene, seconds: float, folder: Path) -> dict[str, float]:
    """Plays one scene; returns its figures."""
    with served(scene.server, seconds) as address:
        return watched(scene, seconds, folder, address)


def watched(scene: Scene, seconds: float, folder: Path, address: str) -> dict[str, float]:
    trace = folder / f"{scene.name}.jsonl"
    start = 0 if scene.asked else record(trace, seconds + scene.skipped, scene.skipped)
    reader, writer = os.pipe()
    source = scene.source.format(seconds=seconds, trace=str(trace), start=start, address=address)
    log = "SessionLog.create()" if scene.asked else "SessionLog.nowhere()"
    with Terminal(CODE.format(source=source, report=writer, log=log), SIZE, pass_fds=(writer,)) as terminal:
        os.close(writer)
        user, reports, patience = User(terminal), ScreenReports(reader), seconds + 60
        reports.wait_for("ready", user, patience)
        if scene.loaded:
            terminal.send("go on\r")
            reports.wait_for("done", user, patience)
        if scene.asked:
            terminal.send("go on\r")
        reports.wait_for("streaming", user, patience)
        facts = reports.wait_for("done", user, patience, scene.user)
        terminal.send(QUIT)
        terminal.wait_for_exit()
    os.close(reader)
    del facts["at"]
    return facts | (
        {"echo p95 ms": percentile(user.echoes, 95), "echo max ms": max(user.echoes)} if user.echoes else {}
    )


def record(path: Path, seconds: float, skipped: float = 0.0) -> int:
    """Writes a trace of an answer that came at 1000 tokens per second for ``seconds``; returns how many of its rounds
    ended within the first ``skipped`` seconds."""
    writer = SessionLog.record_into(path)
    writer.record(READY)
    writer.record(TurnStarted(1, 40, 0, {"block_size": 16, "temperature": 0.0}, "go on"))
    writer.record(PrefillDone(1, 1.0))
    first = 0
    for step in endless(recorded_steps(), 1, 1000.0):
        if step.time > seconds:
            break
        writer.record(step)
        first += step.time <= skipped
    writer.close()
    return first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenes", nargs="*", help=", ".join(scene.name for scene in SCENES))
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parse(parser, "typing --seconds 2")
    os.environ.setdefault("DFLASH_CHAT_CONFIG", "")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DFLASH_CHAT_STATE"] = folder
        for scene in SCENES:
            if not options.scenes or scene.name in options.scenes:
                show(scene.name, play(scene, options.seconds, Path(folder)))


def show(name: str, facts: dict[str, float]) -> None:
    print(name)
    for key, value in facts.items():
        limit = LIMITS.get(key)
        verdict = "" if limit is None else f"   <= {limit:.0f}   {'ok' if value <= limit else 'MISSED'}"
        print(f"  {key:<12}{value:10.1f}{verdict}", flush=True)


if __name__ == "__main__":
    main()
