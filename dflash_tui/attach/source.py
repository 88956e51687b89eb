"""A server as a source of events: asks it on a thread of its own, and turns its streams into the engine's events."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from threading import Thread
from time import perf_counter
from traceback import format_exc

from dflash_tui.core.settings.servers import ServerAddress
from dflash_tui.core.source import Capabilities, Emit, SourceFactory
from dflash_tui.core.text.harmless import in_line
from engine.commands import Ask, Close, Command, Stop
from engine.events import EngineError, LoadProgress, Step, TurnFinished

from .failures import Loading, ServerFailure
from .server_turn import ReachedServer, ServerTurn, reach
from .transport.connection import Connection, Patience
from .transport.keys import Keys
from .untrusted import harmless

log = logging.getLogger(__name__)

RETRY = 0.5
"""Seconds between two looks at a server that loads its model."""


class ServerSource:
    """Asks a server on a thread of its own: an implementation of :class:`dflash_tui.core.source.Source`."""

    recording = None

    def __init__(self, address: ServerAddress, emit: Emit, patience: Patience | None = None) -> None:
        self.capabilities = Capabilities(local=False)
        keys = self._keys = Keys(address)
        self._address = address
        self._emit: Emit = lambda event: emit(event if isinstance(event, Step) else harmless(keys.redacted(event)))
        self._patience = patience or Patience()
        self._loop = asyncio.new_event_loop()
        """Runs on the source's thread, and takes commands from any."""
        self._asks: asyncio.Queue[Ask | None] = asyncio.Queue()
        """Questions that wait; None ends it."""
        self._waiting: set[int] = set()
        """The turns of those among them that were not stopped."""
        self._reaching: asyncio.Task[ReachedServer] | None = None
        self._answering: asyncio.Task[None] | None = None
        """The running answer, which a stop cancels."""
        self._answered: int | None = None
        """The number of its turn."""
        self._ready = self._closing = False
        self._thread = Thread(target=self._main, name="server", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def send(self, command: Command) -> None:
        with suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._obey, command)

    def join(self, timeout: float | None = None) -> None:
        if self._thread.ident is not None:
            self._thread.join(timeout)

    def _main(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        except ServerFailure as failure:
            self._end(failure)
        except Exception as error:
            self._note("unexpected error while talking to a server")
            self._end(_unexpected(error))

    def _end(self, failure: ServerFailure) -> None:
        self._emit(EngineError("server", str(failure), failure.hint, fatal=True))

    def _note(self, what: str) -> None:
        """Writes the exception at hand into the log, without keys."""
        log.error("%s\n%s", what, self._keys.redacted(format_exc()))

    async def _serve(self) -> None:
        if self._closing:
            return
        async with Connection(self._address, self._patience) as connection:
            self._reaching = asyncio.create_task(self._reach(connection))
            try:
                server = await self._reaching
            except asyncio.CancelledError:
                return
            while (ask := await self._asks.get()) is not None and not self._closing:
                if ask.turn in self._waiting:
                    self._waiting.remove(ask.turn)
                    await self._answer(connection, server, ask)

    def _obey(self, command: Command) -> None:
        match command:
            case Ask():
                self._waiting.add(command.turn)
                self._asks.put_nowait(command)
            case Stop():
                self._stop(command.turn)
            case Close():
                self._closing = True
                self._stop(None)
                self._asks.put_nowait(None)
                if self._reaching is not None:
                    self._reaching.cancel()

    def _stop(self, turn: int | None) -> None:
        """End a turn, or withdraw the question of one that waits. None: the one that runs, and before there is a server
        all that wait."""
        if self._answering is not None and turn in (None, self._answered):
            self._answering.cancel()
        for each in sorted(self._waiting):
            if each == turn or (turn is None and not self._ready):
                self._waiting.remove(each)
                self._emit(TurnFinished(each, "stopped", ""))

    async def _reach(self, connection: Connection) -> ReachedServer:
        until = perf_counter() + self._patience.loading
        while True:
            try:
                server, ready = await reach(connection, self._address)
            except Loading:
                if perf_counter() > until:
                    raise
                self._emit(LoadProgress(f"{connection.where} is loading its model", 0, 0))
                await asyncio.sleep(RETRY)
            else:
                others = {in_line(connection.keys.redacted(name)): self._instead(name) for name in server.facts.models}
                self.capabilities = Capabilities(server.refused, local=False, models=others)
                self._ready = True
                self._emit(ready)
                return server

    def _instead(self, model: str) -> SourceFactory:
        address = replace(self._address, model=model)
        return lambda emit: ServerSource(address, emit, self._patience)

    async def _answer(self, connection: Connection, server: ReachedServer, ask: Ask) -> None:
        turn = ServerTurn(connection, server, ask, self._emit)
        self._answering, self._answered = asyncio.create_task(turn.run()), ask.turn
        try:
            await self._answering
        except asyncio.CancelledError:  # before it began
            self._emit(TurnFinished(ask.turn, "stopped", ""))
        except Exception as error:
            self._note("unexpected error in an answer")
            turn.break_off(_unexpected(error))
        finally:
            self._answering = None


def _unexpected(error: Exception) -> ServerFailure:
    return ServerFailure(
        f"What the server sent could not be understood: {type(error).__name__}.",
        "Ask again; if it happens again, please report it with the log.",
    )
