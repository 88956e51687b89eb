"""``python -m measure.app.screen_cost [--engine real|eager] [--pairs 3] [--size 120x36]``: what the screen costs.

Runs the same turn without a screen and with the chat in a pseudo-terminal, in turns, each in a fresh process, and
prints decoding speed both ways. ``eager`` is a stand-in that spends each round on small PyTorch operations, the worst
neighbour for a screen: it gives up and takes back the interpreter lock thousands of times a second.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import pty
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path

from dflash_tui.core.source import Emit, SourceFactory
from dflash_tui.sources import engine_source
from engine.commands import Ask, Close, EngineOptions, GenerationSettings, Message
from engine.events import EngineReady, Event, TurnFinished
from tests.scripted_engine import PAGE, ScriptedEngine

PROMPT = "Write a web page with a drone swarm"
OPERATIONS = 400
"""Per eager round: about as many as a small model's draft and verify passes."""


def eager_source(emit: Emit) -> ScriptedEngine:
    import torch

    torch.set_num_threads(1)
    left, right = torch.randn(16, 192), torch.randn(192, 192)

    def work() -> None:
        for _ in range(OPERATIONS):
            torch.nn.functional.silu(left @ right)

    return ScriptedEngine(emit, answer=PAGE * 12, work=work)


def factory(engine: str) -> SourceFactory:
    return eager_source if engine == "eager" else engine_source(EngineOptions())


def run_bare(engine: str, report: Path) -> None:
    """The engine alone: events go to a function that drops them."""
    ready, finished = threading.Event(), threading.Event()
    results: list[TurnFinished] = []

    def emit(event: Event) -> None:
        if isinstance(event, EngineReady):
            ready.set()
        elif isinstance(event, TurnFinished):
            results.append(event)
            finished.set()

    sys.setswitchinterval(0.0005)
    source = factory(engine)(emit)
    source.start()
    ready.wait(120)
    source.send(Ask(1, (Message("user", PROMPT),), GenerationSettings()))
    finished.wait(300)
    source.send(Close())
    write_report(report, results[0])


def run_screen(engine: str, report: Path) -> None:
    """The chat in this process's terminal; ends itself with the turn."""
    from dflash_tui.app.main import run_chat

    def source(emit: Emit) -> ScriptedEngine:
        def tap(event: Event) -> None:
            emit(event)
            if isinstance(event, EngineReady):
                report.with_suffix(".ready").touch()
            elif isinstance(event, TurnFinished):
                write_report(report, event)

        return factory(engine)(tap)  # type: ignore[return-value]

    run_chat(source, GenerationSettings(), report.parent)


def write_report(path: Path, event: TurnFinished) -> None:
    facts = event.statistics
    temporary = path.with_suffix(".part")
    temporary.write_text(json.dumps({"tok_s": facts.tok_s, "rounds_s": 1000 * facts.num_spec_steps / facts.decode_ms}))
    temporary.rename(path)


def measure(mode: str, engine: str, size: tuple[int, int]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", __spec__.name, "--mode", mode, "--engine", engine, "--report", str(report)]
        environment = {**os.environ, "DFLASH_CHAT_STATE": folder, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        child = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment, close_fds=True)
        os.close(slave)
        asked = mode == "bare"
        while not report.exists() and child.poll() is None:
            if select.select([master], [], [], 0.05)[0]:
                with contextlib.suppress(OSError):  # the child has closed its end
                    os.read(master, 1 << 16)
            if not asked and report.with_suffix(".ready").exists():
                time.sleep(0.5)
                os.write(master, f"{PROMPT}\r".encode())
                asked = True
        child.terminate()
        child.wait(10)
        os.close(master)
        return dict(json.loads(report.read_text()))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", choices=["real", "eager"], default="eager")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--size", default="120x36")
    parser.add_argument("--mode", choices=["compare", "bare", "screen"], default="compare")
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    if options.mode != "compare":
        (run_bare if options.mode == "bare" else run_screen)(options.engine, options.report)
        return
    width, height = map(int, options.size.split("x"))
    rates: dict[str, list[float]] = {"bare": [], "screen": []}
    for _ in range(options.pairs):
        for mode, values in rates.items():
            values.append(measure(mode, options.engine, (width, height))["rounds_s"])
    bare, screen = (statistics.median(values) for values in rates.values())
    # Pairs run side by side in time, so their ratios stand above what else the machine is doing.
    kept = statistics.median(after / before for before, after in zip(*rates.values(), strict=True))
    print(json.dumps({mode: [round(value, 1) for value in values] for mode, values in rates.items()}))
    print(f"rounds/s: {bare:.1f} without the screen, {screen:.1f} with it: the screen costs {1 - kept:.1%}")


if __name__ == "__main__":
    main()
