"""Where events come from: the engine thread, or anything else that speaks the same vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue

from dflash_tui.core.advice import as_command
from dflash_tui.core.rounds.stretch import Happening, Rewind, Stretch
from dflash_tui.core.sessions.sessions import SessionLog
from dflash_tui.core.source import EngineSource
from dflash_tui.core.traces.replaying import ReplaySource
from dflash_tui.core.traces.writer import TraceWriter
from engine.commands import EngineOptions
from engine.events import EngineReady, Event, Step, TurnFinished

Emit = Callable[[Happening], None]


SourceFactory = Callable[[Emit], EngineSource]


def engine_source(options: EngineOptions) -> SourceFactory:
    """The real engine. It is imported when it is asked for, which is after the first frame."""

    def create(emit: Emit) -> EngineSource:
        from engine.service import EngineService

        return EngineService(options, emit, as_command)

    return create


def replay_source(path: Path, pace: float) -> SourceFactory:
    """A trace in the engine's place."""

    def create(emit: Emit) -> EngineSource:
        return ReplaySource(path, emit, pace)

    return create


class EventQueue:
    """Carries events from the engine thread to the screen, and writes them down on the way.

    The log is written first and by the engine's own thread: what reached the disk never waits for a frame.
    """

    def __init__(self, log: SessionLog, trace: TraceWriter | None = None) -> None:
        self.log = log
        self.trace = trace
        """Records the run, if the user wants that."""
        self.diverted: Callable[[Event], None] | None = None
        """Takes the events instead, while the engine works for something that is no part of the conversation. May
        only change while the engine is idle."""
        self.wake: Callable[[], None] = lambda: None
        """Called by the engine thread when an answer has begun and when it has ended: somebody may wait for that."""
        self._events: SimpleQueue[Happening] = SimpleQueue()

    def put(self, event: Happening) -> None:
        """Called by the engine thread."""
        if isinstance(event, Stretch | Rewind):
            self._events.put(event)  # a replay's, of which nothing is written down
            return
        if self.diverted is not None:
            self.diverted(event)
            return
        self.log.record(event)
        if self.trace is not None:
            self.trace.record(event)
        self._events.put(event)
        if isinstance(event, TurnFinished) or (isinstance(event, Step) and event.index == 0):
            self.wake()

    def take(self, limit: int) -> list[Happening]:
        """At most ``limit`` events, oldest first; never waits."""
        events: list[Happening] = []
        while len(events) < limit:
            try:
                events.append(self._events.get_nowait())
            except Empty:
                break
        return events

    def renew_log(self, ready: EngineReady | None, log: SessionLog | None = None) -> None:
        """A new conversation gets a record of its own; ``log`` is that of an older one which goes on. Must not be
        called while a turn runs."""
        self.log.close()
        self.log = log or SessionLog.create(self.log.path.parent)
        if ready is not None:
            self.log.record(ready)
