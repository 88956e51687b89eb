"""A recorded answer played in a loop: an engine as fast as one wants, at next to no cost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, cycle
from queue import Empty, SimpleQueue

from dflash_tui.core.replay.bundled import find_recording
from dflash_tui.core.replay.recording import read_recording
from dflash_tui.core.source import Capabilities
from engine.commands import Ask, Close, Command, Stop
from engine.events import EngineReady, Event, PrefillDone, Step, TurnFinished, TurnStarted
from engine.rounds.statistics import TurnMeter

TOKENS_PER_SECOND = 1000.0
READY = EngineReady("demo/gemma4-tiny", "demo/dflash-b16", "cuda", "bfloat16", 16, 131_072, 0.0)
"""Says that it runs on a GPU: beside one the screen may draw as often as it likes."""


def recorded_steps() -> list[Step]:
    """The steps of a bundled trace, without what ends its answer."""
    steps = read_recording(find_recording("html")).steps
    return [step for step in steps if all(token.channel == "answer" for token in step.emitted)]


def endless(steps: list[Step], turn: int) -> Iterator[Step]:
    """``steps`` again and again, timed so that they make ``TOKENS_PER_SECOND``."""
    tokens = 0
    for index, step in zip(count(), cycle(steps), strict=False):
        tokens += len(step.emitted)
        yield replace(step, turn=turn, index=index, time=tokens / TOKENS_PER_SECOND, context_length=40 + tokens)


class Tape:
    """Answers every question for ``seconds``. A source like the engine."""

    capabilities = Capabilities()
    recording = None

    def __init__(self, emit: Callable[[Event], None], seconds: float) -> None:
        self._emit, self._seconds = emit, seconds
        self._steps = recorded_steps()
        self._queue: SimpleQueue[Command] = SimpleQueue()
        self._thread = threading.Thread(target=self._main, name="tape", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def send(self, command: Command) -> None:
        self._queue.put(command)

    def join(self, timeout: float | None = None) -> None:
        if self._thread.ident is not None:
            self._thread.join(timeout)

    def _main(self) -> None:
        self._emit(READY)
        while not isinstance(command := self._queue.get(), Close):
            if isinstance(command, Ask) and self._answer(command):
                return

    def _answer(self, ask: Ask) -> bool:
        """True when Close came meanwhile."""
        self._emit(TurnStarted(ask.turn, 40, 0, ask.settings.to_dict()))
        self._emit(PrefillDone(ask.turn, 1.0))
        meter, text = TurnMeter(), []
        started, interrupt = time.monotonic(), None
        for step in endless(self._steps, ask.turn):
            if step.time > self._seconds or (interrupt := self._wait(started + step.time - time.monotonic())):
                break
            self._emit(step)
            meter.add(step)
            text += [token.text for token in step.emitted]
        reason = "stopped" if interrupt else "stop"
        self._emit(TurnFinished(ask.turn, reason, "".join(text), "", meter.statistics(40)))  # type: ignore[arg-type]
        return isinstance(interrupt, Close)

    def _wait(self, seconds: float) -> Stop | Close | None:
        """Until it is time, or until someone wants an end."""
        try:
            command = self._queue.get(timeout=seconds) if seconds > 0 else self._queue.get_nowait()
        except Empty:
            return None
        return command if isinstance(command, Stop | Close) else None
