"""``python -m measure.app.recording_cost [--pairs 24] [--block 16|auto|none]``: what a conversation's file
costs the engine.

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
from dataclasses import replace
from math import sqrt
from pathlib import Path
from statistics import median

from dflash_tui.app.main import SWITCH_INTERVAL
from dflash_tui.core.desk.event_queue import EventQueue
from dflash_tui.core.sessions.sessions import SessionLog
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


class Measurement:
    """The bundled pair behind the application's queue, as the chat has it, without a screen."""

    def __init__(self, folder: Path, settings: GenerationSettings) -> None:
        self._folder, self._settings, self._turn = folder, settings, 0
        self._queue = EventQueue(SessionLog.nowhere())
        self._woken = threading.Event()
        self._queue.wake = self._woken.set
        self.engine = EngineService(EngineOptions(), self._queue.put)
        self.engine.start()
        deadline = time.monotonic() + PATIENCE
        while not any(isinstance(event, EngineReady) for event in self._queue.take(1)):
            assert time.monotonic() < deadline, "the engine isn't ready"
            time.sleep(0.01)

    def answer(self, recorded: bool) -> TurnStatistics:
        """Asks for one answer, which is written into a file or nowhere; returns its statistics."""
        self._turn += 1
        log = SessionLog(self._folder / f"{self._turn}.jsonl") if recorded else SessionLog.nowhere()
        log.user(self._turn, QUESTION.content)
        self._queue.log = log
        self.engine.send(Ask(self._turn, (QUESTION,), self._settings))
        while True:
            assert self._woken.wait(PATIENCE), "the answer doesn't end"
            self._woken.clear()
            for event in self._queue.take(sys.maxsize):
                if isinstance(event, TurnFinished):
                    log.close()
                    assert log.failure is None, log.failure
                    return event.statistics


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
    answers: dict[bool, list[float]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as folder:
        pair = Measurement(Path(folder), replace(BLOCKS[wanted.block], max_new_tokens=wanted.tokens))
        pair.answer(False), pair.answer(True)  # the first answers meet a cold machine
        for number in range(wanted.pairs):
            for recorded in (False, True) if number % 2 else (True, False):
                facts = pair.answer(recorded)
                answers[recorded].append(facts.decode_ms)
        pair.engine.send(Close())
        pair.engine.join(PATIENCE)
    costs = [after / before - 1 for before, after in zip(answers[False], answers[True], strict=True)]
    cost, (low, high) = median(costs), interval(costs)
    rounds = facts.num_spec_steps or facts.num_tokens
    print(f"{facts.num_tokens} tokens in {rounds} rounds, {wanted.pairs} pairs of answers")
    print(f"decoding {median(answers[False]):.0f} ms without a file, {median(answers[True]):.0f} ms with one")
    print(f"recording costs {cost:.2%} (95 % interval {low:.2%} to {high:.2%}), limit {LIMIT:.0%}")
    return int(cost > LIMIT and not wanted.quick)


if __name__ == "__main__":
    sys.exit(main())
