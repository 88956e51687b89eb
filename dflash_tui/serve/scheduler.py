"""Schedules one engine, which answers one request at a time: requests wait here for their turn, and hear the engine's
events in it. Everything here runs on the server's thread."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic, time

from dflash_tui.core.text.counted import counted
from engine.commands import Command, Stop
from engine.events import EngineError, EngineReady, Event, LoadProgress, TurnFinished

from .failures import ApiFailure
from .fair_queue import FairQueue
from .requests import CompletionRequest

LOADING_RETRY = 5
RECENT = 0.2
"""The weight of the newest answer in the moving average of an answer's duration."""

LOADING = "The models are still being loaded."
ENDING = "The server is ending."


@dataclass(eq=False, slots=True)
class Ticket:
    """A request that waits or is being answered."""

    client: str
    wanted: CompletionRequest
    arrived: float = field(default_factory=lambda: monotonic())
    begun: float | None = None
    turn: int = 0
    """The engine's number of its turn; 0 while it waits."""
    stopped: bool = False
    """Whether its own stop text came, or its client went."""
    gone: bool = False
    """Whether nobody waits for the answer any more."""
    events: asyncio.Queue[Event | ApiFailure] = field(default_factory=asyncio.Queue)

    async def next(self, seconds: float) -> Event:
        """The next event of its turn. Raises :class:`ApiFailure` when it gets none, ``TimeoutError`` when none comes in
        so many seconds."""
        if self.events.empty():
            async with asyncio.timeout(seconds):
                event = await self.events.get()
        else:
            event = self.events.get_nowait()
        if isinstance(event, ApiFailure):
            raise event
        return event

    @property
    def waited(self) -> float:
        """Seconds that the request has spent in the queue."""
        return 0.0 if self.begun is None else self.begun - self.arrived


class Scheduler:
    """Gives the engine one request after the other. ``send`` hands the engine commands; :meth:`apply` takes its
    events."""

    def __init__(
        self, send: Callable[[Command], None], most_waiting: int, note: Callable[[Ticket, TurnFinished], None]
    ) -> None:
        """``note`` is called with every answer that ended."""
        self.ready: EngineReady | None = None
        self.since = int(time())
        self.target_bytes = 0
        """Bytes of the target's weights in its files; 0 where that isn't known."""
        self._send = send
        self._most_waiting = most_waiting
        self.note = note
        self._queue: FairQueue[Ticket] = FairQueue()
        self._current: Ticket | None = None
        self._turns = 0
        self._usual = 0.0
        """The moving average of an answer's duration, in seconds; 0 before the first has ended."""
        self._closed: ApiFailure | None = None
        """Why nothing is answered any more; None while requests are taken."""
        self._idle = asyncio.Event()
        self._idle.set()

    # Requests

    def require_ready(self) -> EngineReady:
        """What the engine said when it was ready. Raises :class:`ApiFailure` while models load, and when it has
        ended."""
        if self._closed is not None:
            raise self._closed
        if self.ready is None:
            raise ApiFailure(503, LOADING, code="loading", retry_after=LOADING_RETRY)
        return self.ready

    def submit(self, client: str, wanted: CompletionRequest) -> Ticket:
        """Queues a request. Raises :class:`ApiFailure` when the queue is full: then whoever has most in it gives way to
        a client with fewer."""
        self.require_ready()
        ticket = Ticket(client, wanted)
        if self._current is not None and len(self._queue) >= self._most_waiting:
            crowded_out = self._queue.give_way(client)
            if crowded_out is None:
                raise self._full()
            crowded_out.events.put_nowait(self._full())
        self._queue.join(client, ticket)
        self._advance()
        return ticket

    def stop(self, ticket: Ticket) -> None:
        """Stops a running answer, whose rest isn't wanted; its last events still come."""
        if ticket is self._current and not ticket.stopped:
            ticket.stopped = True
            self._send(Stop(ticket.turn))

    def withdraw(self, ticket: Ticket) -> None:
        """Withdraws a request for which nobody waits any more. Does nothing once it was answered."""
        ticket.gone = True
        if not self._queue.leave(ticket.client, ticket):
            self.stop(ticket)

    # The engine

    def apply(self, event: Event) -> None:
        """Takes an event of the engine."""
        match event:
            case LoadProgress(phase="loading the target", unit="bytes"):
                self.target_bytes = event.total
            case EngineReady():
                self.ready = event
            case EngineError(fatal=True):
                self._close(failure := ApiFailure(500, f"The engine has ended: {event.message} {event.hint}".rstrip()))
                self._abandon(failure)
            case _:
                self._tell(event)

    def _tell(self, event: Event) -> None:
        ticket = self._current
        if ticket is None or getattr(event, "turn", None) != ticket.turn:
            return
        if not ticket.gone:
            ticket.events.put_nowait(event)
        if isinstance(event, TurnFinished):
            self._finish(ticket, event)

    def _finish(self, ticket: Ticket, event: TurnFinished) -> None:
        if ticket.begun is not None:
            took = monotonic() - ticket.begun
            self._usual += (RECENT if self._usual else 1) * (took - self._usual)
        self._current = None
        try:
            self.note(ticket, event)
        finally:
            self._advance()  # who waits isn't held up by what can't be noted

    def _advance(self) -> None:
        """Gives the next request its turn, if none is running."""
        if self._current is None and (ticket := self._queue.next()) is not None:
            self._turns += 1
            self._current = ticket
            ticket.turn, ticket.begun = self._turns, monotonic()
            self._send(ticket.wanted.ask(ticket.turn))
        self._show_queue()

    def _show_queue(self) -> None:
        if self._current is None:
            self._idle.set()
        else:
            self._idle.clear()

    @property
    def waiting(self) -> int:
        """How many requests are in the queue."""
        return len(self._queue)

    def _full(self) -> ApiFailure:
        begun = self._current.begun if self._current is not None else None
        spent = 0.0 if begun is None else monotonic() - begun
        usual = self._usual or spent  # an answer takes at least what the first has taken so far
        seconds = max(math.ceil(max(usual - spent, 0.0) + usual * len(self._queue)), 1)
        message = f"The queue is full: {counted(len(self._queue), 'request')} before yours. Try again in {seconds} s."
        return ApiFailure(503, message, code="queue_full", retry_after=seconds)

    # The end

    async def end(self, seconds: float) -> int:
        """Takes no more requests, tells those who wait so, and stops the running answer after its round. Waits for that
        at most ``seconds``. Returns how many get no whole answer."""
        unanswered = len(self._queue) + (self._current is not None)
        self._close(closed := ApiFailure(503, ENDING, code="ending"))
        if self._current is not None:
            self._send(Stop(self._current.turn))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), seconds)
            self._abandon(closed)
        return unanswered

    @property
    def closed(self) -> ApiFailure | None:
        """The failure for whoever gets no whole answer any more; None while the server answers."""
        return self._closed

    def _close(self, failure: ApiFailure) -> None:
        self._closed = failure
        for ticket in self._queue.clear():
            ticket.events.put_nowait(failure)
        self._show_queue()

    def _abandon(self, failure: ApiFailure) -> None:
        """Fails the running answer, of which the engine will say no more."""
        if self._current is not None:
            self._current.events.put_nowait(failure)
            self._current = None
            self._show_queue()
