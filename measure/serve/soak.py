"""Hours of a server's life in minutes: requests of every kind at once, from clients that vanish.

    python -m measure.serve.soak --minutes 30                  the bundled pair
    python -m measure.serve.soak --minutes 0.5 --scripted      an engine that was written down, for CI

Ends with 1 where the server grew by more than 10 MB after its first fifth, left something open, or hung.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from measure.quick import parse

MOST_GROWTH_MB = 10.0
SETTLING = 0.2
"""The share of the time after which memory is measured for comparison."""
PATIENCE = 60.0
"""Seconds in which anything has to be answered or refused."""
CLIENTS = 6
QUESTIONS = (
    "hello",
    "Write a quicksort in Python",
    "What is 12 * 7?",
    "What is a mixture of experts?",
    "Why is π red?",
)
PROGRAM = [sys.executable, "-c", "from dflash_tui.cli.main import program; program()", "serve", "--device", "cpu"]
SCRIPTED = [sys.executable, "-m", "support.scripted", "plain", "serve"]


@dataclass
class Server:
    process: subprocess.Popen[str]
    host: str
    port: int

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)

    def get(self, path: str) -> str:
        connection = self.connect()
        connection.request("GET", path)
        told = connection.getresponse().read().decode()
        connection.close()
        return told

    def megabytes(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def sockets(self) -> int:
        """How many sockets are open, those that nobody closed among them."""
        links = (Path(f"/proc/{self.process.pid}/fd") / name for name in os.listdir(f"/proc/{self.process.pid}/fd"))
        return sum("socket" in os.readlink(link) for link in links if os.path.lexists(link))

    def busy(self) -> int:
        """How many requests run or wait."""
        lines = self.get("/metrics").splitlines()
        counts = [line for line in lines if re.match(r"vllm:num_requests_(running|waiting)\{", line)]
        return int(sum(float(line.rpartition(" ")[2]) for line in counts))


@dataclass
class ClientReports:
    """What the clients report."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def body(chance: random.Random, **more: Any) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "messages": [{"role": "user", "content": chance.choice(QUESTIONS)}],
        "max_tokens": chance.choice((1, 8, 40, 160)),
        "temperature": chance.choice((0, 0.8)),
        "user": str(chance.randrange(4)),
    }
    if chance.random() < 0.3:
        asked |= {"return_dflash_events": True, "timings_per_token": True, "logprobs": True, "return_token_ids": True}
    if chance.random() < 0.2:
        asked |= {"stop": ["e", "\n"]}
    return asked | more


def whole(server: Server, chance: random.Random) -> None:
    connection = server.connect()
    connection.request("POST", "/v1/chat/completions", json.dumps(body(chance)))
    answer = connection.getresponse()
    told = json.loads(answer.read())
    assert (answer.status == 200 and told["choices"]) or (answer.status == 503 and told["error"]), told
    connection.close()


def streamed(server: Server, chance: random.Random) -> None:
    connection = server.connect()
    connection.request("POST", "/v1/chat/completions", json.dumps(body(chance, stream=True)))
    answer = connection.getresponse()
    told = answer.read()
    assert answer.status == 503 or told.endswith(b"data: [DONE]\n\n"), told[-200:]
    connection.close()


def vanishing(server: Server, chance: random.Random) -> None:
    """A client that goes while it waits, in the middle of the stream, or before it has sent everything; in one way or
    the other."""
    data = json.dumps(body(chance, stream=chance.random() < 0.7, max_tokens=400)).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {server.host}\r\nContent-Length: {len(data)}\r\n\r\n".encode()
    with socket.create_connection((server.host, server.port), PATIENCE) as client:
        if chance.random() < 0.5:  # a reset instead of an end
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        if chance.random() < 0.15:
            client.sendall((head + data)[: chance.randrange(len(head + data))])
            return
        client.sendall(head + data)
        client.settimeout(chance.choice((0.001, 0.05, 0.5)))
        try:
            client.recv(chance.choice((1, 2000)))
        except TimeoutError:
            return


def wrong(server: Server, chance: random.Random) -> None:
    connection = server.connect()
    path, sent = chance.choice([
        ("/v1/chat/completions", "{"), ("/v1/chat/completions", json.dumps(body(chance, n=2))),
        ("/v1/nothing", "{}"), ("/v1/completions", "x" * 100_000),
    ])  # fmt: skip
    connection.request("POST", path, sent)
    answer = connection.getresponse()
    assert 400 <= answer.status < 500 or answer.status == 503, answer.status
    json.loads(answer.read())
    connection.close()


def looking(server: Server, _: random.Random) -> None:
    for path in ("/health", "/v1/models", "/metrics", "/dflash"):
        assert server.get(path)


KINDS: tuple[tuple[Callable[[Server, random.Random], None], int], ...] = (
    (whole, 3), (streamed, 4), (vanishing, 5), (wrong, 2), (looking, 1),
)  # fmt: skip


def client(server: Server, seed: int, until: float, told: ClientReports) -> None:
    chance = random.Random(seed)
    kinds, weights = zip(*KINDS, strict=True)
    while time.monotonic() < until:
        kind = chance.choices(kinds, weights)[0]
        try:
            kind(server, chance)
        except Exception as error:
            told.failures.append(f"{kind.__name__}: {type(error).__name__}: {error}")
        told.counts[kind.__name__] += 1
        time.sleep(chance.choice((0, 0, 0.01, 0.1)))


def start(command: list[str]) -> Server:
    pipe = subprocess.PIPE
    process = subprocess.Popen([*command, "--port", "0"], stdout=pipe, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    found = next(found for line in process.stdout if (found := re.search(r"http://([\d.]+):(\d+)/v1", line)))
    return Server(process, found[1], int(found[2]))


def soak(command: list[str], seconds: float) -> list[str]:
    """Lets clients loose on the server and prints figures; returns what went wrong."""
    server, told = start(command), ClientReports()
    began = time.monotonic()
    threads = [
        threading.Thread(target=client, args=(server, seed, began + seconds, told), daemon=True)
        for seed in range(CLIENTS)
    ]
    try:
        for thread in threads:
            thread.start()
        time.sleep(SETTLING * seconds)
        settled = peak = server.megabytes()
        while any(thread.is_alive() for thread in threads):
            peak = max(peak, server.megabytes())
            time.sleep(0.2)
            if time.monotonic() > began + seconds + 2 * PATIENCE:
                return [*told.failures, "a client hangs"]
        deadline = time.monotonic() + PATIENCE
        while (busy := server.busy()) and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1)  # closes connections that were left
        grown, sockets = server.megabytes() - settled, server.sockets()
        print(
            f"{sum(told.counts.values())} requests in {seconds:.0f} s ({dict(told.counts)}): {settled:.1f} MB after "
            f"{SETTLING * seconds:.0f} s, {grown:+.1f} MB at the end, peak {peak - settled:+.1f} MB; "
            f"{sockets} sockets, {busy} requests left; {len(told.failures)} failures",
            flush=True,
        )
        whole(server, random.Random(0))
        problems = list(told.failures)
        if grown > MOST_GROWTH_MB:
            problems.append(f"grew by {grown:.1f} MB")
        if busy:
            problems.append(f"{busy} requests are still there")
        if sockets > 8:  # the listening one and the pairs of event loops
            problems.append(f"{sockets} sockets are open")
        server.process.terminate()
        if server.process.wait(20) != 143:
            problems.append(f"ended with {server.process.returncode}")
        return problems
    finally:
        server.process.kill()
        server.process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--scripted", action="store_true")
    wanted = parse(parser, "--scripted --minutes 0.1")
    problems = soak(SCRIPTED if wanted.scripted else PROGRAM, 60 * wanted.minutes)
    print("\n".join(problems[:20]) or "nothing went wrong")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
