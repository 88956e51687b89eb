"""``python -m measure.app.recording_cost [--pairs 24] [--block 16|auto|none]``: what a conversation's file
costs the engine.

The bundled pair answers one question again and again in this process, recorded and not in turns. What the engine's
thread does to hand its events on is taken in processor time, so that whatever else the machine does is not in it; what
a file adds to that, of two answers next to each other, is held against the time of the rounds. Ends with 1 where the
upper end of the interval is above the limit.
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
from typing import NamedTuple

from dflash_tui.app.main import SWITCH_INTERVAL
from dflash_tui.core.desk.event_queue import EventQueue
from dflash_tui.core.sessions.sessions import SessionLog
from dflash_tui.core.source import Happening
from engine.commands import AUTO, Ask, Close, EngineOptions, GenerationSettings, Message
from engine.events import EngineReady, Step, TurnFinished
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


class Answer(NamedTuple):
    rounds: int
    tokens: int
    decode_ms: float
    handed_us: float
    """Microseconds of processor time in which the engine's thread handed on what it said."""


class Measurement:
    """The bundled pair behind the application's queue, as the chat has it, without a screen."""

    def __init__(self, folder: Path, settings: GenerationSettings) -> None:
        self._folder, self._settings, self._turn = folder, settings, 0
        self._queue = EventQueue(SessionLog.nowhere())
        self._woken = threading.Event()
        self._queue.wake = self._woken.set
        self._rounds, self._handed_ns = 0, 0
        self.engine = EngineService(EngineOptions(), self._put)
        self.engine.start()
        deadline = time.monotonic() + PATIENCE
        while not any(isinstance(event, EngineReady) for event in self._queue.take(1)):
            assert time.monotonic() < deadline, "the engine isn't ready"
            time.sleep(0.01)

    def _put(self, event: Happening) -> None:
        """Takes an event on the engine's thread, as the application does."""
        begin = time.thread_time_ns()
        self._queue.put(event)
        self._handed_ns += time.thread_time_ns() - begin
        self._rounds += isinstance(event, Step)

    def answer(self, recorded: bool) -> Answer:
        """Asks for one answer, which is written into a file or nowhere."""
        self._turn += 1
        log = SessionLog(self._folder / f"{self._turn}.jsonl") if recorded else SessionLog.nowhere()
        log.user(self._turn, QUESTION.content)
        self._queue.log = log
        self._rounds = self._handed_ns = 0
        self.engine.send(Ask(self._turn, (QUESTION,), self._settings))
        while True:
            assert self._woken.wait(PATIENCE), "the answer doesn't end"
            self._woken.clear()
            for event in self._queue.take(sys.maxsize):
                if isinstance(event, TurnFinished):
                    log.close()
                    assert log.failure is None, log.failure
                    facts = event.statistics
                    return Answer(self._rounds, facts.num_tokens, facts.decode_ms, self._handed_ns / 1000)


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
    answers: dict[bool, list[Answer]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as folder:
        pair = Measurement(Path(folder), replace(BLOCKS[wanted.block], max_new_tokens=wanted.tokens))
        pair.answer(False), pair.answer(True)  # the first answers meet a cold machine
        for number in range(wanted.pairs):
            for recorded in (False, True) if number % 2 else (True, False):
                answers[recorded].append(pair.answer(recorded))
        pair.engine.send(Close())
        pair.engine.join(PATIENCE)
    rounds, tokens, *_ = answers[True][-1]
    us = {recorded: median(each.handed_us / each.rounds for each in answers[recorded]) for recorded in answers}
    pairs = list(zip(answers[False], answers[True], strict=True))
    costs = [(after.handed_us - before.handed_us) / (1000 * before.decode_ms) for before, after in pairs]
    cost, (low, high) = median(costs), interval(costs)
    round_ms = median(each.decode_ms / each.rounds for each in answers[False])
    print(f"{tokens} tokens in {rounds} rounds of {round_ms:.2f} ms, {wanted.pairs} pairs of answers")
    print(f"handing a round on takes {us[False]:.0f} us of the engine's thread without a file, {us[True]:.0f} with one")
    print(f"recording costs {cost:.2%} (95 % interval {low:.2%} to {high:.2%}), limit {LIMIT:.0%}")
    return int(high > LIMIT and not wanted.quick)


if __name__ == "__main__":
    sys.exit(main())
