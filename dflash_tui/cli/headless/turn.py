"""One question to the engine without a screen: load, ask, hand every event on, and end for a reason."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from types import FrameType

from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.source import Source, SourceFactory, Wanted, events_only
from engine.commands import Ask, Close, Stop
from engine.events import EngineError, EngineReady, Event, TurnFinished

from ..problems import Problem, engine_problem
from .output import Output

JOIN_SECONDS = 2.0
LOOK_SECONDS, UNREAD_SECONDS = 0.05, 0.5
"""Seconds between two looks whether the output is still waited for; and those that its reader gets when it isn't."""
UNREAD, UNREAD_HINT = "The output was not read to its end.", "The rest of the answer is lost with it; -o writes a file."
_SIGNALS = {signal.SIGINT: ExitCode.INTERRUPTED, signal.SIGTERM: ExitCode.TERMINATED}

# Events, and reasons to end early: both reach the main thread through one queue, in the order they happened.
Inbox = SimpleQueue[Event | ExitCode]


@dataclass(frozen=True, slots=True)
class Ending:
    code: ExitCode
    problem: Problem | None = None
    unwritten: Problem | None = None
    """Why the output isn't where it belongs; None where it is."""


Prepare = Callable[[Source, EngineReady], Ask]
"""Makes the question, once the source can say how long it may be. Raises :class:`Problem`."""


def run_turn(
    source: SourceFactory,
    prepare: Prepare,
    handle: Callable[[Event], None],
    timeout: float | None,
    wanted: Wanted,
    output: Output,
) -> Ending:
    """Starts the source, sends what ``prepare`` makes when it is ready, gives ``handle`` every event on this thread,
    and ends the ``output``. Ctrl+C, SIGTERM and ``timeout`` (seconds, loading included) stop after the round in flight,
    with its ``TurnFinished``; a second Ctrl+C doesn't wait, and none of them for an output that nobody reads.
    ``BrokenPipeError`` ends the turn quietly. A source that lacks something ``wanted`` isn't asked."""
    inbox: Inbox = SimpleQueue()
    engine = source(events_only(inbox.put))
    with signals_into(inbox):
        engine.start()
        deadline = None if timeout is None else time.monotonic() + timeout
        conversation = _Conversation(engine, inbox, prepare, handle, deadline, wanted)
        try:
            return conversation.see_written(output, conversation.run())
        except BrokenPipeError:
            engine.send(Stop())
            return Ending(ExitCode.BROKEN_PIPE)
        finally:
            engine.send(Close())
            engine.join(JOIN_SECONDS)


@dataclass(slots=True)
class _Conversation:
    """The state of :func:`run_turn`: whether the question was asked, and why the turn was stopped."""

    _engine: Source
    _inbox: Inbox
    _prepare: Prepare
    _handle: Callable[[Event], None]
    _deadline: float | None
    _wanted: Wanted
    _asked: bool = False
    _stopped: ExitCode | None = None
    _problem: Problem | None = None

    def run(self) -> Ending:
        while True:
            item = self._next()
            ending = self._stop(item) if isinstance(item, ExitCode) else self._advance(item)
            if ending is not None:
                return ending

    def see_written(self, output: Output, ending: Ending) -> Ending:
        """Returns when the output is complete, or soon after somebody wants an end."""
        try:
            output.end()
            while not output.written(LOOK_SECONDS):
                why = self._stopped or self._wants_end()
                if why is not None and not output.written(UNREAD_SECONDS):
                    early = ending if self._stopped is not None else _ended_early(why)
                    return replace(early, unwritten=Problem(UNREAD, UNREAD_HINT, early.code))
        except Problem as problem:
            return replace(ending, unwritten=problem)
        return ending

    def _wants_end(self) -> ExitCode | None:
        """Why not to wait any longer; None where nothing says so."""
        if self._deadline is not None and time.monotonic() >= self._deadline:
            return ExitCode.TIMEOUT
        while not self._inbox.empty():
            item = self._inbox.get()
            if isinstance(item, ExitCode):
                return item
        return None

    def _next(self) -> Event | ExitCode:
        if self._deadline is None or self._stopped is not None:
            return self._inbox.get()
        try:
            return self._inbox.get(timeout=max(0.0, self._deadline - time.monotonic()))
        except Empty:
            return ExitCode.TIMEOUT

    def _stop(self, why: ExitCode) -> Ending | None:
        if not self._asked or self._stopped is not None:
            return _ended_early(why)
        self._stopped = why
        self._engine.send(Stop())
        return None

    def _advance(self, event: Event) -> Ending | None:
        self._handle(event)
        match event:
            case EngineReady():
                if problem := lacking(self._engine, self._wanted):
                    return Ending(problem.code, problem)
                try:
                    ask = self._prepare(self._engine, event)
                except Problem as problem:
                    return Ending(problem.code, problem)
                self._asked = True
                self._engine.send(ask)
            case EngineError():
                self._problem = engine_problem(event)
                if event.fatal:
                    self._handle_rest()
                    return self._ending()
            case TurnFinished():
                return self._ending()
        return None

    def _handle_rest(self) -> None:
        """Handle what has come of the turn's last events, behind a fatal error after which no more will come."""
        self._engine.join(JOIN_SECONDS)
        while not self._inbox.empty():
            item = self._inbox.get()
            if not isinstance(item, ExitCode):
                self._handle(item)

    def _ending(self) -> Ending:
        if self._problem is not None:
            return Ending(self._problem.code, self._problem)
        return Ending(ExitCode.OK) if self._stopped is None else _ended_early(self._stopped)


def lacking(source: Source, wanted: Wanted) -> Problem | None:
    """The problem with the first thing that was asked for and that the source can't do; None when it can do all."""
    for flag, reason in source.capabilities.lacks(wanted).items():
        return Problem(f"{flag}: {reason}", f"Leave {flag} out.")
    return None


def _ended_early(why: ExitCode) -> Ending:
    """The ending of a turn that was stopped: whoever pressed Ctrl+C knows why, and a time limit is worth a word."""
    if why is not ExitCode.TIMEOUT:
        return Ending(why)
    hint = "Allow more time, or ask for less with --max-new-tokens."
    return Ending(why, Problem("The time that --timeout allows is up.", hint, why))


@contextmanager
def signals_into(inbox: Inbox) -> Iterator[None]:
    """Turn signals into entries of the queue, to which a signal handler may put."""

    def note(number: int, _frame: FrameType | None) -> None:
        inbox.put(_SIGNALS[signal.Signals(number)])

    before = {number: signal.signal(number, note) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
