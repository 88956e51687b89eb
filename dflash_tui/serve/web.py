"""The routes of the server, and how an answer travels: as one object, or as server-sent events while it is written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Coroutine
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from dflash_tui.core.version import PROGRAM, installed_version
from engine.commands import Ask, GenerationSettings
from engine.events import EngineError, EngineReady, Event, TurnFinished, TurnStarted, event_to_dict

from .dialects import DIALECTS, About, Dialect, Json, dialect_at, encoded
from .dialects.messages import Messages
from .dialects.ollama import listed, shown
from .failures import ApiFailure, engine_failure
from .guard import Guard
from .paths import NOT_HAD, Paths
from .requests import CompletionRequest, Offer, no_such_model, parse_json
from .scheduler import Scheduler, Ticket

MAX_BODY_BYTES = 4 * 1024 * 1024
BODY_SECONDS = 30.0
"""Seconds that a client may take to send its request."""
HEAD_SECONDS, SIGN_SECONDS = 0.2, 10.0
"""Seconds after which a stream begins although nothing is known yet, so that what is refused at once can have its own
status; then seconds between two signs of life."""

UNKNOWN, MAX_HEADER = "x-ignored-parameters", 1000
"""The header that names parameters of the request which nobody here knows, and its most characters."""


_OLLAMAS = ["/api/tags", "/api/ps", "/api/show", "/api/version"]
_COUNT = f"{Messages.path}/count_tokens"
_OTHERS = ["/v1/models", "/health", "/dflash", *_OLLAMAS, _COUNT]
_PATHS = ", ".join([*_OTHERS, *(each.path for each in DIALECTS)])


class Gone(Exception):
    """Raised when the client went, or reads no more."""


class Web:
    """The application: what the server answers to each address."""

    def __init__(
        self,
        scheduler: Scheduler,
        defaults: GenerationSettings,
        key: str | None,
        names: Collection[str] | None,
        count: Callable[[Ask], int | None],
    ) -> None:
        """``count`` tells, from any thread, how many tokens a question's prompt has; None for what is no prompt."""
        self._scheduler = scheduler
        self._count_prompt = count
        self._defaults = defaults
        self._fingerprint = f"{PROGRAM}-{installed_version()}"
        routes = [
            *(Route(dialect.path, _Answers(self, dialect), methods=["POST"]) for dialect in DIALECTS),
            Route("/v1/models", self._models),
            Route("/v1/models/{name:path}", self._model),
            Route("/health", self._health),
            Route("/dflash", self._dflash),
            Route("/api/tags", self._tags),
            Route("/api/ps", self._tags),
            Route("/api/show", self._show, methods=["POST"]),
            Route("/api/version", self._version),
            Route(_COUNT, self._count_tokens, methods=["POST"]),
            *(Route(path, self._not_had, methods=["GET", "POST"]) for path in NOT_HAD),
        ]
        guard = Middleware(Guard, key=key, names=names, refuse=self.refusal)
        handlers: dict[Any, Callable[[Request, Any], Awaitable[Response]]] = {
            ApiFailure: self._refused,
            HTTPException: self._no_such_address,
            Exception: self._broken,
        }
        self.app = Starlette(routes=routes, middleware=[Middleware(Paths), guard], exception_handlers=handlers)

    def refusal(self, failure: ApiFailure, path: str) -> Response:
        """An error in the place of an answer, as the clients of that address know errors."""
        return _json(dialect_at(path).error(failure), failure.status, failure.headers)

    # Small answers

    async def _health(self, _: Request) -> Response:
        self._scheduler.require_ready()
        return _json({"status": "ok"})

    async def _models(self, _: Request) -> Response:
        return _json({"object": "list", "data": [self._card(self._scheduler.require_ready())]})

    async def _model(self, request: Request) -> Response:
        ready, name = self._scheduler.require_ready(), request.path_params["name"]
        if not self._offer(ready).has(name):
            raise no_such_model(name, ready.target)
        return _json(self._card(ready))

    async def _tags(self, request: Request) -> Response:
        ready = self._scheduler.require_ready()
        running = request.url.path == "/api/ps"
        return _json(listed(ready, self._scheduler.since, self._scheduler.target_bytes, running))

    async def _show(self, request: Request) -> Response:
        ready, data = self._scheduler.require_ready(), parse_json(await _body(request))
        name = str(data.get("model") or data.get("name") or "")
        if not self._offer(ready).has(name):
            raise no_such_model(name, ready.target)
        return _json(shown(ready))

    async def _count_tokens(self, request: Request) -> Response:
        """Anthropic's count of a prompt, which asks the model for nothing and waits for no turn."""
        ready, data = self._scheduler.require_ready(), parse_json(await _body(request))
        wanted = Messages.read(data, self._offer(ready))
        number = await asyncio.to_thread(self._count_prompt, wanted.ask(0))
        if number is None:
            raise ApiFailure(400, "The model's chat template takes no such conversation.", param="messages")
        return _json({"input_tokens": number})

    async def _not_had(self, request: Request) -> Response:
        what = NOT_HAD[request.url.path]
        raise ApiFailure(400, f"{request.url.path} can't be had: this server makes {what}, it writes text.", code=None)

    async def _version(self, _: Request) -> Response:
        return _json({"version": installed_version()})

    async def _dflash(self, _: Request) -> Response:
        ready = self._scheduler.require_ready()
        return _json({**event_to_dict(ready), "server": PROGRAM, "version": installed_version()})

    def _card(self, ready: EngineReady) -> Json:
        return {
            "id": ready.target,
            "object": "model",
            "created": self._scheduler.since,
            "owned_by": PROGRAM,
            "max_model_len": ready.max_context,
        }

    def _offer(self, ready: EngineReady) -> Offer:
        return Offer(ready.target, ready.max_context, self._defaults, ready.calls)

    # Answers

    async def answer(self, dialect: type[Dialect], request: Request, send: Send) -> None:
        """Reads a request, queues it, and sends what comes. Raises :class:`ApiFailure` before anything was sent."""
        ready = self._scheduler.require_ready()
        data = parse_json(await _body(request))
        if (immediate := dialect.at_once(data, ready.target)) is not None:
            await _json(immediate)(request.scope, request.receive, send)
            return
        wanted = dialect.read(data, self._offer(ready))
        reply = dialect(wanted, About(ready.target, self._fingerprint, ready.max_block_size - 1))
        ticket = self._scheduler.submit(_client(request, wanted), wanted)
        try:
            sender = _Sender(send, reply)
            await _unless_gone(request.receive, self._follow(ticket, reply, sender), sender)
        finally:
            self._scheduler.withdraw(ticket)

    async def _follow(self, ticket: Ticket, reply: Dialect, sender: _Sender) -> None:
        """Turns events into what is sent, until the turn is over."""
        try:
            finished = await self._stream(ticket, reply, sender)
        except ApiFailure as failure:
            if sender.begun:
                await sender.stream(reply.frame(reply.failed(failure)))
                await sender.stream(reply.ends_with, last=True)
            else:
                await sender.whole(reply.failed(failure), failure)
        else:
            stream = ticket.wanted.stream
            await (sender.stream(reply.ends_with, last=True) if stream else sender.whole(reply.whole(finished)))

    async def _stream(self, ticket: Ticket, reply: Dialect, sender: _Sender) -> TurnFinished:
        """Sends what an answer's events make as they come. Raises :class:`ApiFailure` for one that didn't end well."""
        failure: ApiFailure | None = None
        data = b""
        while True:
            event = await _next(ticket, sender)
            reply.answer.queue_ms = 1000 * ticket.waited
            if isinstance(event, EngineError):
                failure = engine_failure(event)
            if isinstance(event, TurnFinished) and event.reason == "stopped" and not ticket.stopped:
                failure = self._scheduler.closed
            chunks = reply.take(event)
            if failure is not None and isinstance(event, TurnFinished):
                raise failure
            data += b"".join(map(reply.frame, chunks))
            # An opening that tells nothing yet goes with the first token: sending it alone would slow the prompt's
            # prefill.
            if data and (ticket.wanted.events or not isinstance(event, TurnStarted)):
                await sender.stream(data)
                data = b""
            if isinstance(event, TurnFinished):
                return event
            if reply.answer.stopped:
                self._scheduler.stop(ticket)

    # Errors

    async def _refused(self, request: Request, failure: ApiFailure) -> Response:
        return self.refusal(failure, request.url.path)

    async def _no_such_address(self, request: Request, error: HTTPException) -> Response:
        if error.status_code == 405:
            message = f"{request.url.path} takes no {request.method}."
        elif error.status_code == 404:
            message = f"There is nothing at {request.url.path}; this server has {_PATHS}."
        else:
            message = error.detail
        answer = self.refusal(ApiFailure(error.status_code, message, code=None), request.url.path)
        answer.headers.update(error.headers or {})
        return answer

    async def _broken(self, request: Request, error: Exception) -> Response:
        """The answer to a request that broke the server itself; the traceback is in the log."""
        failure = ApiFailure(500, f"The server failed: {type(error).__name__}. Its log says more.")
        return self.refusal(failure, request.url.path)


class _Answers:
    """An address that streams answers, as an ASGI application, so that it hears when its client goes."""

    def __init__(self, web: Web, dialect: type[Dialect]) -> None:
        self._web = web
        self._dialect = dialect

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            await self._web.answer(self._dialect, request, send)
        except ApiFailure as failure:
            await self._web.refusal(failure, self._dialect.path)(scope, receive, send)
        except (Gone, ClientDisconnect):
            pass  # nobody is there to be told


class _Sender:
    """Sends a response: as events, or whole. Raises :class:`Gone` when nobody takes it."""

    def __init__(self, send: Send, reply: Dialect) -> None:
        self._send = send
        self._reply = reply
        wanted = reply.wanted
        self._stream = wanted.stream
        self._unknown = json.dumps(wanted.unknown)[:MAX_HEADER] if wanted.unknown else ""
        self._sending = False
        self.begun = False
        self._ended = False

    @property
    def owes_head(self) -> bool:
        """Whether this is a stream that hasn't begun."""
        return self._stream and not self.begun

    async def stream(self, data: bytes, last: bool = False) -> None:
        """Sends a part of a stream of events."""
        await self.begin()
        self._ended = last
        await self._hand_over({"type": "http.response.body", "body": data, "more_body": not last})

    async def begin(self) -> None:
        """Sends the head of the stream, unless it was sent."""
        if not self.begun:
            self.begun = True
            await self._start(200, {"content-type": self._reply.media_type, "cache-control": "no-cache",
                                    "x-accel-buffering": "no"})  # fmt: skip

    async def sign_of_life(self) -> None:
        """Says in a stream that has nothing else to say that it lives, unless something is being sent or the last part
        was."""
        if not self._stream or self._sending or self._ended:
            return
        await (self.stream(self._reply.sign_of_life()) if self.begun else self.begin())

    async def whole(self, data: Json, failure: ApiFailure | None = None) -> None:
        """Sends one object as the whole response: an answer, or a failure's error."""
        body = encoded(data)
        self._ended = True
        headers = {"content-type": "application/json", "content-length": str(len(body))}
        await self._start(failure.status if failure else 200, headers | dict(failure.headers if failure else {}))
        await self._hand_over({"type": "http.response.body", "body": body})

    async def _start(self, status: int, headers: dict[str, str]) -> None:
        sent_headers = {**headers, UNKNOWN: self._unknown} if self._unknown else headers
        raw = [(name.lower().encode(), value.encode()) for name, value in sent_headers.items()]
        await self._hand_over({"type": "http.response.start", "status": status, "headers": raw})

    async def _hand_over(self, message: dict[str, Any]) -> None:
        self._sending = True
        try:
            await self._send(message)
        except OSError:
            raise Gone from None
        finally:
            self._sending = False


async def _next(ticket: Ticket, sender: _Sender) -> Event:
    """The next event of a turn. While it doesn't come the stream begins, and says now and then that it lives."""
    while True:
        try:
            return await ticket.next(HEAD_SECONDS if sender.owes_head else SIGN_SECONDS)
        except TimeoutError:
            await sender.sign_of_life()


async def _unless_gone(receive: Receive, work: Coroutine[Any, Any, None], sender: _Sender) -> None:
    """Does ``work``; cancels it and raises :class:`Gone` when the client goes before, or reads no more."""
    working, watching = asyncio.create_task(work), asyncio.create_task(_departure(receive, sender))
    try:
        await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Gone
        working.result()
    finally:
        for task in (working, watching):
            task.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)


async def _departure(receive: Receive, sender: _Sender) -> None:
    """Returns when the client is gone. Whether one that sends no more is still there shows only when something is sent
    to it."""
    while (await receive())["type"] != "http.disconnect":
        if sender.begun:
            await sender.sign_of_life()


async def _body(request: Request) -> bytes:
    """The request's body. Raises :class:`ApiFailure` when it is too long, or takes too long."""
    body = bytearray()
    too_long = ApiFailure(413, f"The request is longer than {MAX_BODY_BYTES // 1024 // 1024} MiB.")
    if int(request.headers.get("content-length", "0")) > MAX_BODY_BYTES:
        raise too_long
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > MAX_BODY_BYTES:
                    raise too_long
    except TimeoutError:
        raise ApiFailure(408, f"The request did not arrive within {BODY_SECONDS:.0f} s.") from None
    return bytes(body)


def _client(request: Request, wanted: CompletionRequest) -> str:
    """The name of whoever asks, for the queue: programs on one machine have one address, so the user field or agent
    tells them apart."""
    address = request.client.host if request.client else ""
    return f"{address} {wanted.user or request.headers.get('user-agent', '')}"


def _json(data: Json, status: int = 200, headers: Any = None) -> Response:
    return Response(encoded(data), status, headers, media_type="application/json")
