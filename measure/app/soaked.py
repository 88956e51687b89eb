"""The chat under observation, in a terminal's process: how late its event loop runs, what it costs, how it grows."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import time
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from dflash_tui.app.application import ChatApp
from dflash_tui.app.main import SWITCH_INTERVAL
from dflash_tui.core.desk.event_queue import EventQueue
from dflash_tui.core.sessions.sessions import SessionLog
from dflash_tui.core.source import Happening, SourceFactory
from engine.commands import GenerationSettings
from engine.events import Step

PROBE = 0.005
"""Seconds between two looks at the clock."""
MEGABYTE = 2**20
SETTLING = 2.0
"""Seconds of streaming before memory is measured, while caches fill."""


@dataclass
class Observation:
    """What the process saw of itself from the first step of a turn to its end. Seconds, unless the name says more."""

    lags: array[float] = field(default_factory=lambda: array("d"))
    """How much later than asked the event loop came back, measured every ``PROBE`` seconds."""
    wall: float = 0.0
    process_cpu: float = 0.0
    screen_cpu: float = 0.0
    """Processor seconds of the thread that draws."""
    frames: int = 0
    tokens: int = 0
    settled_bytes: int = 0
    peak_bytes: int = 0
    """The most bytes of resident memory at any time after settling."""
    end_bytes: int = 0

    def figures(self) -> dict[str, float]:
        """The figures of a report, short enough to fit into a pipe that nobody reads at the moment."""
        lags = [1000 * lag for lag in self.lags]
        return {
            "tok/s": self.tokens / self.wall,
            "frames/s": self.frames / self.wall,
            "lag p95 ms": percentile(lags, 95),
            "lag p99 ms": percentile(lags, 99),
            "lag max ms": max(lags, default=0.0),
            "CPU %": 100 * self.process_cpu / self.wall,
            "screen %": 100 * self.screen_cpu / self.wall,
            "growth MB": (self.end_bytes - self.settled_bytes) / MEGABYTE,
            "peak MB": self.peak_bytes / MEGABYTE,
        }


def percentile(values: list[float], percent: int) -> float:
    """The percentile of the values; 0 where there are fewer than two."""
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1] if len(values) > 1 else 0.0


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class ObservedApp(ChatApp):
    """A chat that writes a line of JSON to ``report`` when the engine is ready, when a turn begins, and at its end with
    the observation."""

    report: TextIO

    def on_ready(self) -> None:  # in addition to ChatApp's: Textual calls both
        self.seen: Observation | None = None
        screen = self.chat_screen
        draw = screen.pump._draw

        def drawn(events: list[Happening], gauges: bool) -> None:
            self._count(events)
            draw(events, gauges)

        screen.pump._draw = drawn
        self.run_worker(self._probe(), name="probe")
        self.run_worker(self._follow(), name="follow")

    def _count(self, events: list[Happening]) -> None:
        if self.seen is not None:
            self.seen.frames += 1
            self.seen.tokens += sum(len(event.emitted) for event in events if isinstance(event, Step))

    async def _probe(self) -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(PROBE)
            if self.seen is not None:
                self.seen.lags.append(max(time.monotonic() - before - PROBE, 0.0))

    async def _follow(self) -> None:
        reducer = self.chat_screen.chat.reducer
        while reducer.ready is None:
            await asyncio.sleep(0.02)
        self._tell({"at": "ready"})
        while True:
            while not reducer.busy:
                await asyncio.sleep(0.02)
            await self._observe()

    async def _observe(self) -> None:
        reducer = self.chat_screen.chat.reducer
        self.seen = seen = Observation()
        started = time.monotonic(), time.process_time(), time.thread_time()
        self._tell({"at": "streaming"})
        while reducer.busy:
            await asyncio.sleep(0.1)
            if time.monotonic() - started[0] >= SETTLING:
                seen.end_bytes = resident_bytes()
                seen.settled_bytes = seen.settled_bytes or seen.end_bytes
                seen.peak_bytes = max(seen.peak_bytes, seen.end_bytes)
        ended = time.monotonic(), time.process_time(), time.thread_time()
        seen.wall, seen.process_cpu, seen.screen_cpu = (
            after - before for before, after in zip(started, ended, strict=True)
        )
        self.seen = None
        self._tell({"at": "done", **seen.figures()})

    def _tell(self, fact: dict[str, object]) -> None:
        self.report.write(json.dumps(fact) + "\n")
        self.report.flush()


def run(source: SourceFactory, report: int, log: SessionLog) -> None:
    """Runs the chat on ``source`` until it is left; ``report`` is the descriptor to write to."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    queue = EventQueue(log)
    app = ObservedApp(GenerationSettings(), Path("dflash-out"), queue, source)
    with os.fdopen(report, "w") as app.report:
        app.run()
        app.chat_screen.join_engine(3.0)
    queue.log.close()
