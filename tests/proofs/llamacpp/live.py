"""A running llama.cpp in tests: what a source says, and what the server says when it is asked directly."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from dflash_tui.core.source import Happening, SourceFactory
from dflash_tui.llamacpp.plan import make_plan
from dflash_tui.llamacpp.process import LlamaProcess
from engine.commands import Ask, Close, GenerationSettings, Message
from engine.events import EngineError, EngineReady, TurnFinished

KEY = "open sesame"
PATIENCE = 60.0


class Heard:
    """A source, started, and what it says."""

    def __init__(self, source: SourceFactory) -> None:
        self.events: SimpleQueue[Happening] = SimpleQueue()
        self.source = source(self.events.put)
        self.source.start()
        self.turn = 0

    def until(self, *kinds: type) -> list[Any]:
        """The events up to the first of these kinds, or to a fatal error."""
        events: list[Any] = []
        while not events or not isinstance(events[-1], kinds):
            events.append(self.events.get(timeout=PATIENCE))
            if isinstance(events[-1], EngineError) and events[-1].fatal:
                break
        return events

    def ready(self) -> EngineReady:
        last = self.until(EngineReady)[-1]
        assert isinstance(last, EngineReady), last
        return last

    def send_question(self, text: str, **settings: Any) -> None:
        self.turn += 1
        self.source.send(Ask(self.turn, (Message("user", text),), GenerationSettings(**settings)))

    def ask(self, text: str, **settings: Any) -> list[Any]:
        self.send_question(text, **settings)
        return self.until(TurnFinished)


@contextmanager
def heard(source: SourceFactory) -> Iterator[Heard]:
    listener = Heard(source)
    try:
        yield listener
    finally:
        listener.source.send(Close())
        listener.source.join(10)


@contextmanager
def served(target: Path, drafter: Path | None = None, context: int | None = None) -> Iterator[str]:
    """llama.cpp with this model: its URL. It wants ``KEY``."""
    process = LlamaProcess()
    try:
        plan = make_plan(target, drafter, process.machine(), context, "cpu")
        yield process.serve(plan.orders(KEY), lambda: None)
    finally:
        process.end()


def asked(url: str, body: Any = None, key: str = KEY) -> Any:
    """What the server itself says at a path: JSON, or text."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=PATIENCE) as response:
        text = response.read().decode()
    return json.loads(text) if text.startswith(("{", "[")) else text


def counters(url: str) -> dict[str, int]:
    """The counters of ``/metrics`` without llama.cpp's prefix."""
    found = re.findall(r"^llamacpp:(\w+_total) (\d+)$", asked(f"{url}/metrics"), re.MULTILINE)
    return {name: int(value) for name, value in found}


def children(pid: int) -> list[int]:
    """llama.cpp's processes below a program."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended
            parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
            if parent == str(pid) and "llamacpp/child.py" in (process / "cmdline").read_text():
                found.append(int(process.name))
    return found


def running(pid: int) -> bool:
    """Whether a process is there, and no corpse that nobody has buried yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
