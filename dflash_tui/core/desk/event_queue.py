"""Carries events from the thread that they come from to whoever shows them."""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Lock

from engine.events import EngineReady, Event, Step, TurnFinished, TurnStarted
from engine.rounds.store import Recorder, RoundStore

from ..sessions.sessions import SessionLog
from ..source import Happening, Rewind, StepBatch


class EventQueue:
    """Carries events from the engine's thread, which logs them first: the disk never waits for a frame."""

    def __init__(self, log: SessionLog, trace: SessionLog | None = None) -> None:
        self.log = log
        self.trace = trace
        """Records the whole run, whichever conversation it is of, if the user wants that."""
        self.diverted: Callable[[Event], None] | None = None
        """Takes the events while the engine does something outside the conversation; changes only while it is idle."""
        self.wake: Callable[[], None] = lambda: None
        """Called by the engine thread when it is ready, and when an answer has begun or ended: somebody may wait."""
        self._recorder = Recorder()
        self._ready: EngineReady | None = None
        """The model that answers, as every log is to know it."""
        self._logging = Lock()
        """Held while an event is logged, and while another log takes the place of the one that is: a model may become
        ready on the engine's thread while the user begins another conversation."""
        self._begun: tuple[int, RoundStore] | None = None
        """The latest turn, and its rounds as they are told."""
        self._events: SimpleQueue[Happening] = SimpleQueue()

    def put(self, event: Happening) -> None:
        """Log an event, then queue it. Called by the engine's thread."""
        if isinstance(event, StepBatch | Rewind):
            self._events.put(event)  # a jump in a recording: nothing to write down, and what follows stands elsewhere
            self._recorder = Recorder()
            return
        if self.diverted is not None:
            self.diverted(event)
            return
        rounds = self._recorder.take(event)
        if isinstance(event, TurnStarted):
            self._begun = event.turn, rounds
        with self._logging:
            if isinstance(event, EngineReady):
                self._ready = event
            self.log.record(event, rounds)
        if self.trace is not None:
            self.trace.record(event, rounds)
        self._events.put(event)
        if isinstance(event, EngineReady | TurnFinished) or (isinstance(event, Step) and event.index == 0):
            self.wake()

    def take(self, limit: int) -> list[Happening]:
        """Take out at most ``limit`` events, the oldest first, without waiting."""
        events: list[Happening] = []
        while len(events) < limit:
            try:
                events.append(self._events.get_nowait())
            except Empty:
                break
        return events

    def rounds_of(self, turn: int) -> RoundStore | None:
        """The log that the rounds of the latest turn go into, so that a history need not keep them again; None for any
        other turn."""
        begun = self._begun
        return begun[1] if begun is not None and begun[0] == turn else None

    def wait(self) -> Happening:
        """The next event, whenever it comes."""
        return self._events.get()

    def renew_log(self, log: SessionLog | None = None) -> None:
        """Begin a new log, or go on with ``log``, for another conversation, which is told of the model that answers, if
        one does by now. Not while a turn runs."""
        with self._logging:
            self.log.close()
            self.log = log or SessionLog.create(self.log.path.parent)
            if self._ready is not None:
                self.log.record(self._ready)
