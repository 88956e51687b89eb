"""The server as a whole: an engine, a scheduler of requests, and HTTP on a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Thread
from typing import Any

import uvicorn

from dflash_tui.core.failures import Failure
from dflash_tui.core.garbage import freeze_garbage_collector
from dflash_tui.core.source import Emit, Happening, Rewind, Source, SourceFactory, StepBatch
from engine.commands import Close, GenerationSettings, Stop
from engine.events import EngineError, EngineReady, TurnFinished

from .connection import ClientConnection
from .guard import LOCAL_NAMES
from .scheduler import Scheduler, Ticket
from .web import Web

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8000
DEFAULT_QUEUE = 32
SWITCH_INTERVAL = 0.0005
"""Seconds a thread keeps the interpreter's lock: at the default of 5 ms the engine waits for what is being sent."""
ROUND_SECONDS, SEND_SECONDS, JOIN_SECONDS = 3.0, 2.0, 3.0
"""Seconds that ending waits for the round in flight, for what is being sent, and for a thread."""
KEEP_SECONDS = 60
"""Seconds that a connection may be idle between two requests."""
BACKLOG = 128
NOTE_SECONDS = 10.0
"""Seconds in which the same trouble is logged once."""

Note = Callable[[Ticket, TurnFinished], None]
log = logging.getLogger(__name__)


class AddressFailure(Failure):
    """Raised where nobody can listen at an address."""


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Where the server listens, for whom, and with which defaults."""

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    """0 takes any port that is free."""
    key: str | None = None
    most_waiting: int = DEFAULT_QUEUE
    defaults: GenerationSettings = field(default_factory=GenerationSettings)
    """Settings for what a request doesn't say."""


def is_local(host: str) -> bool:
    """Whether only this machine can reach what listens at ``host``. Raises :class:`AddressFailure` for a name that
    leads nowhere."""
    return all(str(address[0]).startswith("127.") or address[0] == "::1" for _, address in _addresses(host, 0))


def _addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, tuple[Any, ...]]]:
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise AddressFailure(f"There is no address {host!r}.", "Name another with --host.") from None
    return [(family, address) for family, _, _, _, address in infos]


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections from now on. Raises :class:`AddressFailure`."""
    family, address = _addresses(host, port)[0]
    try:
        made = socket.create_server(address, family=family, backlog=BACKLOG)
    except PermissionError:
        raise AddressFailure(f"You may not listen on port {port}.", "Choose one above 1023 with --port.") from None
    except OSError as error:
        if error.errno is not None and "in use" in (error.strerror or ""):
            hint = "Choose another with --port, or end the program that has it."
            raise AddressFailure(f"Port {port} of {host} is in use.", hint) from None
        raise AddressFailure(
            f"Nobody can listen on {host}, port {port}: {error.strerror}.", "Name another with --host."
        ) from None

    # By the protocol asyncio sees that chunks must not wait for one another (Nagle): that costs an answer 40 ms.
    return socket.socket(made.family, made.type, socket.IPPROTO_TCP, made.detach())


class Serving:
    """A running server. ``watch`` hears the engine's events, on the engine's thread."""

    def __init__(self, source: SourceFactory, options: ServeOptions, watch: Emit, note: Note) -> None:
        """Listens from now on, and answers after :meth:`start`. Raises :class:`AddressFailure`."""
        self._watch = watch
        self.loop = asyncio.new_event_loop()
        self._socket = listen(options.host, options.port)
        names = LOCAL_NAMES | {options.host.lower()} if is_local(options.host) else None
        self._source: Source = source(self._hear)
        self.scheduler = Scheduler(self._source.send, options.most_waiting, note)
        web = Web(
            self.scheduler, options.defaults, options.key, names, lambda ask: self._source.capabilities.count(ask)
        )
        config = uvicorn.Config(
            web.app, http=ClientConnection, ws="none", lifespan="off", log_config=None, access_log=False,
            server_header=False, backlog=BACKLOG,
            timeout_keep_alive=KEEP_SECONDS, timeout_graceful_shutdown=int(SEND_SECONDS),
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        self._ending = False
        self.unanswered = 0
        """How many requests its end left without a whole answer."""
        self._noted: dict[str, float] = {}
        """When each kind of trouble was last logged."""
        self._thread = Thread(target=self._run, name="server", daemon=True)
        host, port = self._socket.getsockname()[:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def start(self) -> None:
        """Begins to answer; until the models have loaded it says that they load."""
        self._thread.start()
        self._source.start()

    def end(self) -> None:
        """Ends in an orderly way, within seconds: requests that wait are told so, the running answer ends with its
        round."""
        self._ending = True
        if self._thread.ident is not None and self._thread.is_alive():
            with suppress(RuntimeError, TimeoutError):
                ending = asyncio.run_coroutine_threadsafe(self.scheduler.end(ROUND_SECONDS), self.loop)
                self.unanswered = ending.result(ROUND_SECONDS + 1)
            self._server.should_exit = True
            self._thread.join(SEND_SECONDS + JOIN_SECONDS)
        self._socket.close()
        self._source.send(Stop())
        self._source.send(Close())

    def join(self, timeout: float | None = None) -> None:
        """Waits for the engine to end."""
        self._source.join(timeout)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.set_exception_handler(self._log_what_broke)
        died: BaseException | None = None
        try:
            self.loop.run_until_complete(self._server.serve(sockets=[self._socket]))
        except BaseException as error:
            died = error
        if self._ending:
            self.loop.close()
        else:
            self._tell_death(died)

    def _log_what_broke(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Logs what broke in one connection, or for lack of file descriptors. It ends that connection alone, and may
        come by the hundred."""
        message, now = str(context.get("message")), time.monotonic()
        if now - self._noted.get(message, -NOTE_SECONDS) < NOTE_SECONDS:
            return
        self._noted[message] = now
        with suppress(Exception):
            log.error("%s", message, exc_info=context.get("exception"))

    def _tell_death(self, error: BaseException | None) -> None:
        """Tells whoever watches that the loop has died, so that they end the process: one that lives and is deaf would
        be the worst."""
        self._socket.close()
        with suppress(Exception):
            log.error("the server's thread has died", exc_info=error)
        why = f" ({type(error).__name__}: {error})" if error is not None else ""
        message = f"The server has ended unasked: nobody is answered any more{why}."
        self._watch(EngineError("server", message, "Start it again; its log says more.", fatal=True))

    def _hear(self, event: Happening) -> None:
        """Hears an event of the engine, on the engine's thread."""
        self._watch(event)
        if not isinstance(event, StepBatch | Rewind):
            if isinstance(event, EngineReady):
                freeze_garbage_collector()
            with suppress(RuntimeError):  # the loop was closed while the engine worked on its last round
                self.loop.call_soon_threadsafe(self.scheduler.apply, event)
