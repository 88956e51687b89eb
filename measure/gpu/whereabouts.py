"""What each thread of a process is at, looked up many times a second, and what it costs. Linux; standard library."""

from __future__ import annotations

import sys
import threading
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import engine

INTERVAL = 0.01
"""Seconds between two looks, where the interpreter is free by then."""
TOLD = 0.05
"""Seconds from which on a thread is told of."""
MOST = 8
"""Things that are told of a thread."""
ENGINE = f"{Path(engine.__file__).parent}/"
PACKAGES = "/site-packages/"
IMPORTING = "<frozen importlib"


class Look(NamedTuple):
    """A thread at a moment."""

    at: float
    """Seconds since the epoch."""
    span: float
    """Seconds since the look before."""
    thread: str
    what: str
    processor: float
    """Seconds that it had of the processors so far."""


@dataclass
class Whereabouts:
    """Watches the process's threads from ``start`` on, the caller's aside. Where C code keeps the interpreter, the time
    until it is free again counts for what is seen then."""

    looks: list[Look] = field(default_factory=list)

    def start(self) -> None:
        self._main = threading.get_ident()
        threading.Thread(target=self._watch, name="whereabouts", daemon=True).start()

    def between(self, begun: float, end: float) -> list[str]:
        """A line for each thread: processor time, and what took longest in that time, in seconds."""
        lines = []
        for thread, looks in self._by_thread().items():
            seconds: defaultdict[str, float] = defaultdict(float)
            for look in (inside := [look for look in looks if begun <= look.at < end]):
                seconds[look.what] += look.span
            told = [f"{what} {took:.2f}" for what, took in sorted(seconds.items(), key=lambda each: -each[1])]
            if sum(seconds.values()) >= TOLD:
                before = max((look.processor for look in looks if look.at < begun), default=0.0)
                used = inside[-1].processor - before
                lines.append(f"{thread} ({used:.2f} of the processors): {', '.join(told[:MOST])}")
        return lines

    def lives(self, begun: float) -> list[str]:
        """When each thread was seen first and last, in seconds since ``begun``."""
        return [
            f"{thread} {looks[0].at - begun:.2f} to {looks[-1].at - begun:.2f}"
            for thread, looks in self._by_thread().items()
        ]

    def _by_thread(self) -> dict[str, list[Look]]:
        threads: dict[str, list[Look]] = {}
        for look in self.looks:
            threads.setdefault(look.thread, []).append(look)
        return threads

    def _watch(self) -> None:
        own, before = threading.get_ident(), time.time()
        while True:
            time.sleep(INTERVAL)
            now, frames = time.time(), sys._current_frames()
            for thread in threading.enumerate():
                frame = None if thread.ident in (own, self._main, None) else frames.get(thread.ident)
                if frame is not None:
                    used = _processor_seconds(thread.native_id)
                    self.looks.append(Look(now, now - before, thread.name, _what(frame), used))
            before = now


def _processor_seconds(native_id: int | None) -> float:
    """What a thread had of the processors, by Linux's books; 0 for one that has just ended."""
    with suppress(OSError):
        return int(Path(f"/proc/self/task/{native_id}/schedstat").read_text().split()[0]) / 1e9
    return 0.0


def _what(frame: FrameType) -> str:
    """``import torch`` for all that this import imports, else the innermost function of the engine, and the innermost
    of all."""
    stack: list[FrameType] = []
    at: FrameType | None = frame
    while at is not None:
        stack.append(at)
        at = at.f_back
    files = [each.f_code.co_filename for each in stack]
    own = next((number for number, file in enumerate(files) if file.startswith(ENGINE)), len(stack) - 1)
    importing = [number for number, file in enumerate(files) if file.startswith(IMPORTING)]
    if importing:
        modules = [
            file.rpartition(PACKAGES)[2].partition("/")[0]
            for each, file in zip(stack, files, strict=True)
            if PACKAGES in file and each.f_code.co_name == "<module>"
        ]
        return f"import {modules[-1] if modules else 'engine'}"
    place = files[own].removeprefix(ENGINE)
    code, inner = stack[own].f_code, stack[0].f_code
    return f"{place}:{code.co_name}" + ("" if own == 0 else f" ({inner.co_name})")
