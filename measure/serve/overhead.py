"""What the socket costs: the same questions to an engine in its own process and to ``dflash-chat serve``, in turns.

    python -m measure.serve.overhead                          the bundled pair
    python -m measure.serve.overhead FOLDER --device cuda     another; both processes load it

Rates are of the tokens behind the first, as whoever asked sees them arrive: from the engine's thread through a queue,
as headless mode has them, and through HTTP. Bounds: 97 % of the rate, 5 ms more to the first token (medians of pairs).
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from engine.commands import Ask, EngineOptions, GenerationSettings, Message
from engine.events import EngineReady, Event, Step, TurnFinished
from engine.service import EngineService

QUESTIONS = ("Write a quicksort in Python", "create a single-file HTML animation of a drone swarm")
BLOCK = 16
"""Fixed: two processes that time their own rounds would choose other widths."""
LEAST_RATE, MOST_MS = 0.97, 5.0
PROGRAM = [sys.executable, "-c", "from dflash_tui.cli.main import program; program()"]
"""Whether it is installed or not."""


@dataclass(frozen=True)
class Run:
    first_ms: float
    """From asking to the first token."""
    rate: float
    """Tokens behind the first round, per second."""
    tokens: int


class Library:
    """The engine in a process of its own, asked through its standard input."""

    def __init__(self, model: str | None, device: str) -> None:
        command = [sys.executable, "-m", "measure.serve.overhead", "--answering", "--device", device]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([*command, *([model] if model else [])], stdin=pipe, stdout=pipe, text=True)
        self._read()

    def ask(self, question: str, tokens: int) -> Run:
        assert self.process.stdin is not None
        print(json.dumps([question, tokens]), file=self.process.stdin, flush=True)
        return Run(**self._read())

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        told: dict[str, Any] = json.loads(self.process.stdout.readline())
        return told


def answering(model: str | None, device: str) -> None:
    """What that process runs."""
    told: SimpleQueue[Event] = SimpleQueue()
    service = EngineService(EngineOptions(model, device=device, time_rounds=False), told.put)
    service.start()
    while not isinstance(told.get(), EngineReady):
        pass
    print(json.dumps({}), flush=True)
    for turn, line in enumerate(sys.stdin, 1):
        question, tokens = json.loads(line)
        asked = time.perf_counter()
        settings = GenerationSettings(BLOCK, max_new_tokens=tokens)
        service.send(Ask(turn, (Message("user", question),), settings))
        times, counts = [], []
        while not isinstance(event := told.get(), TurnFinished):
            if isinstance(event, Step):
                times.append(time.perf_counter())
                counts.append(len(event.emitted))
        print(json.dumps(figures(asked, times, sum(counts), counts[0])), flush=True)


def processor_seconds(process: subprocess.Popen[str]) -> float:
    """What a process has used so far; 0 where nobody says."""
    path = Path(f"/proc/{process.pid}/stat")
    fields = path.read_text().rpartition(") ")[2].split() if path.exists() else ["0"] * 13
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def figures(asked: float, times: list[float], tokens: int, first: int) -> dict[str, float]:
    rate = (tokens - first) / (times[-1] - times[0])
    return {"first_ms": 1000 * (times[0] - asked), "rate": rate, "tokens": tokens}


class Server:
    """``dflash-chat serve``, asked as a client does; ``more`` goes into every request."""

    def __init__(self, model: str | None, device: str, more: dict[str, Any]) -> None:
        command = [*PROGRAM, "serve", *([model] if model else []), "--device", device, "--port", "0"]
        command += ["--block-size", str(BLOCK)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        said = (re.search(r"http://([\d.]+):(\d+)/v1", line) for line in self.process.stdout)
        found = next(filter(None, said), None)
        if found is None:
            sys.exit(f"The server did not start: {' '.join(map(str, command[-8:]))}")
        self._connection = http.client.HTTPConnection(found[1], int(found[2]))
        self._more = more

    def ask(self, question: str, tokens: int) -> Run:
        messages = [{"role": "user", "content": question}]
        body = {"messages": messages, "max_tokens": tokens, "stream": True, "stream_options": {"include_usage": True}}
        asked = time.perf_counter()
        self._connection.request("POST", "/v1/chat/completions", json.dumps(body | self._more))
        times, usage = [], {}
        with self._connection.getresponse() as answer:
            while line := answer.readline():
                now = time.perf_counter()
                if line.startswith(b'data: {"'):
                    chunk = json.loads(line[6:])
                    usage = chunk.get("usage") or usage
                    if chunk["choices"] and chunk["choices"][0]["delta"].get("content"):
                        times.append(now)
        return Run(**figures(asked, times, usage["completion_tokens"], 1))  # type: ignore[arg-type]


@contextmanager
def both(model: str | None, device: str, more: dict[str, Any]) -> Iterator[tuple[Library, Server]]:
    library = Library(model, device)
    try:
        server = Server(model, device, more)
        try:
            yield library, server
        finally:
            server.process.terminate()
            server.process.wait()
    finally:
        library.process.kill()
        library.process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("--events", action="store_true", help="ask for the engine's events too")
    parser.add_argument("--answering", action="store_true", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.answering:
        answering(wanted.model, wanted.device)
        return 0
    more = {"return_dflash_events": True} if wanted.events else {}
    fine = True
    with both(wanted.model, wanted.device, more) as (library, server):
        for question in QUESTIONS:
            fine &= compare(library, server, question, wanted.tokens, wanted.pairs)
    return 0 if fine else 1


def compare(library: Library, server: Server, question: str, tokens: int, pairs: int) -> bool:
    """Prints a line; whether the bounds were kept."""
    for each in (library, server):
        each.ask(question, tokens)
    runs = []
    before = [processor_seconds(each.process) for each in (library, server)]
    for number in range(pairs):
        order = (library, server) if number % 2 == 0 else (server, library)
        told = {each: each.ask(question, tokens) for each in order}
        runs.append((told[library], told[server]))
    assert all(alone.tokens == served.tokens for alone, served in runs), "not the same answer"
    rate = statistics.median(served.rate / alone.rate for alone, served in runs)
    more_ms = statistics.median(served.first_ms - alone.first_ms for alone, served in runs)
    used = [processor_seconds(each.process) - so_far for each, so_far in zip((library, server), before, strict=True)]
    alone_rate, served_rate = (statistics.median(pair[place].rate for pair in runs) for place in (0, 1))
    alone_ms, served_ms = (statistics.median(pair[place].first_ms for pair in runs) for place in (0, 1))
    print(
        f"{question[:32]!r}, {runs[0][0].tokens} tokens, {pairs} pairs: {alone_rate:.0f} tok/s alone, "
        f"{served_rate:.0f} through the socket ({rate:.1%}); "
        f"first token {alone_ms:.1f} ms alone, {served_ms:.1f} ({more_ms:+.1f} ms); "
        f"processor seconds {used[0]:.2f} alone, {used[1]:.2f} served",
        flush=True,
    )
    return rate >= LEAST_RATE and more_ms <= MOST_MS


if __name__ == "__main__":
    sys.exit(main())
