"""``python -m measure.app.recording_cost [--pairs 24] [--block 16|auto|none]``: what ``--trace`` costs the engine.

The bundled pair answers one question again and again in this process, recorded and not in turns, and each turn's own
statistics say how long decoding took. A pair is two answers next to each other in time, in either order, so that their
ratio stands above what else the machine is doing. Ends with 1 where the median is above the limit.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path
from statistics import median

from dflash_tui.app.main import SWITCH_INTERVAL
from dflash_tui.core.desk.event_queue import EventQueue
from dflash_tui.core.sessions.sessions import SessionLog
from dflash_tui.core.traces.writer import TraceWriter
from engine.commands import AUTO, Ask, Close, EngineOptions, GenerationSettings, Message
from engine.events import EngineReady, TurnFinished, TurnStatistics
from engine.service import EngineService
from measure.quick import parse

QUESTION = Message("user", "create a single-file HTML animation of a drone swarm")
BLOCKS = {
    "16": GenerationSettings(block_size=16),
    "auto": GenerationSettings(block_size=AUTO),
    "none": GenerationSettings(speculation=False),
}
PATIENCE = 120.0
LIMIT = 0.01


@dataclass(frozen=True, slots=True)
class Recorded:
    """What one recorded answer cost."""

    statistics: TurnStatistics
    work_ms: float
    """Processor milliseconds of the writers' threads until the answer ended."""
    rest_ms: float
    """Milliseconds from the answer's end until its trace was whole."""


class Measurement:
    """The bundled pair behind the application's queue, as the chat has it, without a screen."""

    def __init__(self, folder: Path, settings: GenerationSettings) -> None:
        self._folder, self._settings, self._turn = folder, settings, 0
        self._queue = EventQueue(SessionLog.create(folder))
        self._woken = threading.Event()
        self._queue.wake = self._wake
        self._work_ms = 0.0
        self.engine = EngineService(EngineOptions(), self._queue.put)
        self.engine.start()
        deadline = time.monotonic() + PATIENCE
        while not any(isinstance(event, EngineReady) for event in self._queue.take(1)):
            assert time.monotonic() < deadline, "the engine isn't ready"
            time.sleep(0.01)

    def plain(self) -> TurnStatistics:
        """Asks for one answer that nothing records but the conversation's log; returns its statistics."""
        self._turn += 1
        self._queue.log.user(self._turn, QUESTION.content)
        self.engine.send(Ask(self._turn, (QUESTION,), self._settings))
        while True:
            assert self._woken.wait(PATIENCE), "the answer doesn't end"
            self._woken.clear()
            for event in self._queue.take(sys.maxsize):
                if isinstance(event, TurnFinished):
                    return event.statistics

    def recorded(self) -> Recorded:
        """Asks for the same answer with a trace."""
        trace = self._queue.trace = TraceWriter(self._folder / f"{self._turn}.dft")
        statistics = self.plain()
        started = time.perf_counter()
        trace.close()
        rest_ms = 1000 * (time.perf_counter() - started)
        self._queue.trace = None
        assert trace.failure is None, trace.failure
        return Recorded(statistics, self._work_ms, rest_ms)

    def _wake(self) -> None:
        """Wakes the main thread when an answer has begun or ended; runs on the engine's thread."""
        writers = [thread for thread in threading.enumerate() if thread.name in ("trace", "session") and thread.ident]
        clocks = [time.pthread_getcpuclockid(thread.ident) for thread in writers if thread.ident]
        self._work_ms = sum(1000 * time.clock_gettime(clock) for clock in clocks)
        self._woken.set()


def interval(values: list[float]) -> tuple[float, float]:
    """Two of the values, between which the median of the distribution lies with 95 % probability."""
    ordered, half = sorted(values), 0.98 * sqrt(len(values))
    middle = (len(values) - 1) / 2
    return ordered[max(round(middle - half), 0)], ordered[min(round(middle + half), len(values) - 1)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=24)
    parser.add_argument("--block", choices=BLOCKS, default="16", help="none: one token at a time")
    parser.add_argument("--tokens", type=int, default=GenerationSettings().max_new_tokens, help="of an answer, at most")
    wanted = parse(parser, "--pairs 1 --tokens 40")
    sys.setswitchinterval(SWITCH_INTERVAL)
    plain: list[TurnStatistics] = []
    recorded: list[Recorded] = []
    with tempfile.TemporaryDirectory() as folder:
        pair = Measurement(Path(folder), replace(BLOCKS[wanted.block], max_new_tokens=wanted.tokens))
        pair.plain(), pair.recorded()  # the first answers meet a cold machine
        for number in range(wanted.pairs):
            if number % 2:
                recorded.append(pair.recorded())
                plain.append(pair.plain())
            else:
                plain.append(pair.plain())
                recorded.append(pair.recorded())
        pair.engine.send(Close())
        pair.engine.join(PATIENCE)
    without, with_trace = [each.decode_ms for each in plain], [each.statistics.decode_ms for each in recorded]
    costs = [after / before - 1 for before, after in zip(without, with_trace, strict=True)]
    cost, (low, high), facts = median(costs), interval(costs), plain[0]
    work, rest = median(each.work_ms for each in recorded), median(each.rest_ms for each in recorded)
    rounds = facts.num_spec_steps or facts.num_tokens
    print(f"{facts.num_tokens} tokens in {rounds} rounds, {wanted.pairs} pairs of answers")
    print(f"decoding {median(without):.0f} ms without a trace, {median(with_trace):.0f} ms with one")
    print(f"recording costs {cost:.2%} (95 % interval {low:.2%} to {high:.2%}), limit {LIMIT:.0%}")
    print(f"writing takes {1000 * work / rounds:.0f} us a round meanwhile, {rest:.1f} ms when the answer has ended")
    return int(cost > LIMIT and not wanted.quick)


if __name__ == "__main__":
    sys.exit(main())
