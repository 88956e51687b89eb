"""A trace in the place of the engine: the same events, at the pace they once came or at another. Imports no torch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from engine.commands import Close, Command, Stop
from engine.events import EngineError, Event, PrefillDone, Step, TurnFinished, TurnStarted
from engine.statistics import TurnMeter

from .reader import Trace, TraceError, read_trace

SLOWEST, FASTEST = 0.05, 1000.0
"""Paces, as multiples of the recorded one. The fastest is as fast as the screen takes it."""
PAUSE = 0.7
"""Seconds between the end of one turn and the next question, at any pace."""
BURST, BURST_SECONDS = 256, 1 / 60
"""At any pace no more events than so many in so much time: whoever draws them must not fall behind."""


class ReplaySource:
    """See :class:`dflash_tui.core.source.EngineSource`. Nothing can be asked of it; ``Stop`` pauses.

    Its own thread reads the trace and hands out the events. Every method may be called from any other thread.
    """

    def __init__(self, path: Path, emit: Callable[[Event], None], pace: float = 1.0) -> None:
        self.path = path
        self.trace: Trace | None = None
        """None until it has been read."""
        self.pace = pace
        """Times the recorded pace. Change it with :meth:`set_pace`."""
        self.played = 0
        """Steps handed out so far."""
        self.playing = True
        self.ended = False
        """Everything was handed out."""
        self._emit = emit
        self._clock, self._since = 0.0, 0.0
        """Where the clock of the trace stood, and when."""
        self._wanted = 0
        """Steps before this one are handed out at once."""
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._main, name="replay", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def send(self, command: Command) -> None:
        match command:
            case Stop():
                self.set_playing(False)
            case Close():
                with self._changed:
                    self._closed = True
                    self._changed.notify()

    def join(self, timeout: float | None = None) -> None:
        if self._thread.ident is not None:
            self._thread.join(timeout)

    def set_playing(self, playing: bool) -> None:
        """Go on, or pause after the step that was handed out last."""
        with self._changed:
            self._set_clock(self._time())
            self.playing = playing
            self._changed.notify()

    def set_pace(self, pace: float) -> None:
        """Raises ``ValueError``, in words for people, when out of range."""
        if not SLOWEST <= pace <= FASTEST:
            raise ValueError(f"the pace must be between {SLOWEST} and {FASTEST:.0f}, not {pace}")
        with self._changed:
            self._set_clock(self._time())
            self.pace = pace
            self._changed.notify()

    def seek(self, played: int) -> None:
        """Hand out at once what is missing until ``played`` steps are out. What is out already stays out: the screen
        goes back by itself."""
        with self._changed:
            self._wanted = max(self._wanted, played)
            self._changed.notify()

    def _main(self) -> None:
        try:
            self.trace = read_trace(self.path)
        except TraceError as error:
            self._emit(EngineError("usage", str(error), error.hint, fatal=True))
        except OSError as error:
            message = f"{self.path} can't be read: {error.strerror}."
            self._emit(EngineError("usage", message, "Choose another file.", fatal=True))
        else:
            with self._changed:
                self._set_clock(0.0)
            self._play(self.trace)

    def _play(self, trace: Trace) -> None:
        start, due, end = 0.0, 0.0, _Ending()
        for number, event in enumerate(trace.events(), start=1):
            if isinstance(event, TurnStarted):
                start = due = due + PAUSE * self.pace
            elif isinstance(event, PrefillDone):
                due = start + event.milliseconds / 1000
            elif isinstance(event, Step):
                due = start + event.time
            if not self._wait_until(due, len(trace.steps)) or (number % BURST == 0 and not self._rest()):
                return
            end.see(event)
            self.played += isinstance(event, Step)
            self._emit(event)
        for event in end.events(trace.problem):
            self._emit(event)
        self.ended = True

    def _wait_until(self, due: float, last: int) -> bool:
        """False when the replay was closed meanwhile. Who wants the ``last`` step wants what comes after it as well."""
        with self._changed:
            while not self._closed:
                if self.played < self._wanted or self._wanted >= last:
                    self._set_clock(due)
                    return True
                left = (due - self._time()) / self.pace
                if self.playing and left <= 0:
                    return True
                self._changed.wait(left if self.playing else None)
            return False

    def _rest(self) -> bool:
        with self._changed:
            return not self._changed.wait_for(lambda: self._closed, BURST_SECONDS)

    def _time(self) -> float:
        passed = time.monotonic() - self._since if self.playing else 0.0
        return self._clock + passed * self.pace

    def _set_clock(self, value: float) -> None:
        self._clock, self._since = value, time.monotonic()


class _Ending:
    """Ends a turn whose end the trace lacks."""

    def __init__(self) -> None:
        self._turn: int | None = None
        self._meter = TurnMeter()
        self._text, self._thought = "", ""

    def see(self, event: Event) -> None:
        match event:
            case TurnStarted():
                self._turn = event.turn
                self._meter = TurnMeter(event.num_prompt_tokens, event.num_reused_tokens)
                self._text, self._thought = "", ""
            case TurnFinished():
                self._turn = None
            case Step():
                self._meter.add(event)
                self._text += "".join(token.text for token in event.emitted if token.channel == "answer")
                self._thought += "".join(token.text for token in event.emitted if token.channel == "thought")

    def events(self, problem: str | None) -> list[Event]:
        """What a reader of the trace should be told at its end."""
        told: list[Event] = []
        if problem is not None:
            told.append(EngineError("generation", problem, turn=self._turn))
        if self._turn is not None:
            statistics = self._meter.statistics()
            told.append(TurnFinished(self._turn, "stopped", self._text, self._thought, statistics))
        return told
