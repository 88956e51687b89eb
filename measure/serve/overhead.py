"""What the socket costs: the same questions to one engine, with ``dflash-chat serve``'s server around it, in turns
directly and through HTTP.

    python -m measure.serve.overhead                          the bundled pair
    python -m measure.serve.overhead FOLDER --device cuda     another

Rates are of the tokens behind the first, as whoever asked sees them arrive: from the engine's thread through a queue,
as headless mode has them, the server hearing nothing of it; and through HTTP, in another process. Each pair is told as
it ends. What counts is the time that the socket adds to a token: beside a small pair's thousands of tokens per second
any socket would look dear, so it is set beside ``--at`` tokens per second where the engine writes more. Bounds: 97 % of
that rate, 5 ms more to the first token (medians of pairs). Processor seconds are the engine's process's, server
included.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from dflash_tui.cli.commands.serve import use_short_turns
from dflash_tui.core.source import Emit, Happening, Source
from dflash_tui.serve.server import ServeOptions, Serving
from dflash_tui.sources import engine_source
from engine.commands import Ask, EngineOptions, GenerationSettings, Message
from engine.events import EngineReady, Step, TurnFinished
from measure.quick import parse

QUESTIONS = ("Write a quicksort in Python", "create a single-file HTML animation of a drone swarm")
BLOCK = 16
LEAST_RATE, MOST_MS = 0.97, 5.0
LARGE = 1000.0
"""Tokens per second of a large pair: the 26B-A4B writes about as many on an H200."""


@dataclass(frozen=True)
class Run:
    first_ms: float
    """Milliseconds from asking to the first token."""
    rate: float
    """Tokens behind the first round, per second."""
    tokens: int


class Host:
    """The process with engine and server: it is asked directly through its standard input, and through its socket."""

    def __init__(self, model: str | None, device: str, more: dict[str, Any]) -> None:
        """``more``: fields that go into every request."""
        command = [sys.executable, "-m", "measure.serve.overhead", "--hosting", "--device", device]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([*command, *([model] if model else [])], stdin=pipe, stdout=pipe, text=True)
        host, _, port = self._read()["url"].removeprefix("http://").partition(":")
        self._connection = http.client.HTTPConnection(host, int(port))
        self._more = more

    def ask_directly(self, question: str, tokens: int) -> Run:
        assert self.process.stdin is not None
        print(json.dumps([question, tokens]), file=self.process.stdin, flush=True)
        return Run(**self._read())

    def ask_server(self, question: str, tokens: int) -> Run:
        messages = [{"role": "user", "content": question}]
        body = {"messages": messages, "max_tokens": tokens, "stream": True, "stream_options": {"include_usage": True}}
        asked = time.perf_counter()
        self._connection.request("POST", "/v1/chat/completions", json.dumps(body | self._more))
        times: list[float] = []
        usage: dict[str, int] = {}
        with self._connection.getresponse() as answer:
            while line := answer.readline():
                now = time.perf_counter()
                if line.startswith(b'data: {"'):
                    chunk = json.loads(line[6:])
                    usage = chunk.get("usage") or usage
                    if chunk["choices"] and chunk["choices"][0]["delta"].get("content"):
                        times.append(now)
        return Run(**figures(asked, times, usage["completion_tokens"], 1))  # type: ignore[arg-type]

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            sys.exit("The engine did not start.")
        told: dict[str, Any] = json.loads(line)
        return told


def hosting(model: str | None, device: str) -> None:
    """Runs the engine and the server, in that process."""
    told: SimpleQueue[Happening] = SimpleQueue()
    engines: list[Source] = []
    direct = False

    def source(emit: Emit) -> Source:
        def hear(event: Happening) -> None:
            if direct or isinstance(event, EngineReady):
                told.put(event)
            if not direct:
                emit(event)

        engines.append(engine_source(EngineOptions(model, device=device, time_rounds=False))(hear))
        return engines[0]

    use_short_turns()
    settings = GenerationSettings(BLOCK)
    serving = Serving(source, ServeOptions(port=0, defaults=settings), lambda _: None, lambda *_: None)
    serving.start()
    told.get()
    print(json.dumps({"url": serving.url}), flush=True)
    for turn, line in enumerate(sys.stdin, 1):
        question, tokens = json.loads(line)
        direct = True
        asked = time.perf_counter()
        engines[0].send(Ask(-turn, (Message("user", question),), replace(settings, max_new_tokens=tokens)))
        times, counts = [], []
        while not isinstance(event := told.get(), TurnFinished):
            if isinstance(event, Step):
                times.append(time.perf_counter())
                counts.append(len(event.emitted))
        direct = False
        print(json.dumps(figures(asked, times, sum(counts), counts[0])), flush=True)


def processor_seconds(process: subprocess.Popen[str]) -> float:
    """Processor seconds that a process has used so far; 0 where nobody says."""
    path = Path(f"/proc/{process.pid}/stat")
    fields = path.read_text().rpartition(") ")[2].split() if path.exists() else ["0"] * 13
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def figures(asked: float, times: list[float], tokens: int, first: int) -> dict[str, float]:
    rate = (tokens - first) / (times[-1] - times[0])
    return {"first_ms": 1000 * (times[0] - asked), "rate": rate, "tokens": tokens}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("--at", type=float, default=LARGE, metavar="TOK_S", help="rate whose share is to be kept")
    parser.add_argument("--events", action="store_true", help="ask for the engine's events too")
    parser.add_argument("--hosting", action="store_true", help=argparse.SUPPRESS)
    wanted = parse(parser, "--device cpu --pairs 1 --tokens 40")
    if wanted.hosting:
        hosting(wanted.model, wanted.device)
        return 0
    host = Host(wanted.model, wanted.device, {"return_dflash_events": True} if wanted.events else {})
    try:
        kept = [compare(host, question, wanted) for question in QUESTIONS]
        return 0 if all(kept) or wanted.quick else 1
    finally:
        host.process.kill()
        host.process.wait()


def compare(host: Host, question: str, wanted: argparse.Namespace) -> bool:
    """Prints a line for each pair and one for all; returns whether the bounds were kept."""
    tokens, pairs = wanted.tokens, wanted.pairs
    ways = (host.ask_directly, host.ask_server)
    for ask in ways:
        ask(question, tokens)
    runs: list[tuple[Run, ...]] = []
    used = [0.0, 0.0]
    for number in range(pairs):
        told: dict[int, Run] = {}
        for way in (0, 1) if number % 2 == 0 else (1, 0):
            before = processor_seconds(host.process)
            told[way] = ways[way](question, tokens)
            used[way] += processor_seconds(host.process) - before
        runs.append((told[0], told[1]))
        print(f"  pair {number + 1} of {pairs}: {told[0].rate:.0f} and {told[1].rate:.0f} tok/s", flush=True)
    assert all(alone.tokens == served.tokens for alone, served in runs), "not the same answer"
    added = statistics.median(1 / served.rate - 1 / alone.rate for alone, served in runs)
    more_ms = statistics.median(served.first_ms - alone.first_ms for alone, served in runs)
    rates = [statistics.median(pair[way].rate for pair in runs) for way in (0, 1)]
    at = min(wanted.at, rates[0])
    share = 1 / (1 + at * max(added, 0.0))
    first = [statistics.median(pair[way].first_ms for pair in runs) for way in (0, 1)]
    print(
        f"{question[:32]!r}, {runs[0][0].tokens} tokens, {pairs} pairs: {rates[0]:.0f} tok/s directly, {rates[1]:.0f} "
        f"through the socket ({1e6 * added:+.0f} us a token: {share:.1%} of {at:.0f} tok/s); first token "
        f"{first[0]:.1f} ms directly, {first[1]:.1f} ({more_ms:+.1f} ms); processor seconds {used[0]:.2f} and "
        f"{used[1]:.2f}",
        flush=True,
    )
    return share >= LEAST_RATE and more_ms <= MOST_MS


if __name__ == "__main__":
    sys.exit(main())
