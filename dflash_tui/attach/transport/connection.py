"""HTTP to one server: asks for JSON, posts a question, and hears its stream. What goes wrong becomes a
:class:`ServerFailure`; keys go to this server alone, and into no sentence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import Any

import httpx2

from dflash_tui.core.settings.servers import ServerAddress

from ..failures import ServerFailure, broke_off, endless, refused, silent, transport, unreadable
from ..untrusted import parsed, sentence
from .framing import MOST_EVENT, Endless, Framing, Json
from .keys import Keys
from .urls import INTERFACE, is_this_machine, proxy_for, root_of, same_server, without_password

MOST_REDIRECTS = 5
_ANOTHER_URL = "Look at the URL, and at proxies in between."


@dataclass(frozen=True, slots=True)
class Patience:
    """How many seconds each part of a conversation with a server is waited for."""

    connect: float = 10.0
    answer: float = 20.0
    """For answers that a server knows at once, such as its list of models."""
    first_token: float = 600.0
    """Seconds to wait for the first token after the question: a long prompt takes its time, and other people's
    questions come first. Behind it also for the next token, as long as there are other signs of life."""
    silence: float = 120.0
    """Seconds to wait between two signs of life, once there was a token."""
    figures: float = 3.0
    """Seconds to wait for the figures behind the end of an answer, on a connection that stays open."""
    loading: float = 1800.0
    """Seconds to wait for a server that says that it loads its model."""


class AnswerDeadline:
    """Keeps the deadline of one answer. Whoever reads the answer tells it what has come."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._asked = self._sign = monotonic()
        self._token: float | None = None
        self._ended: float | None = None

    def sign(self) -> None:
        """Notes a sign of life: a comment, or an event without a token."""
        self._sign = monotonic()

    def token(self) -> None:
        self._token = self._sign = monotonic()
        if self._ended is not None:
            self._ended = self._token

    def end(self) -> None:
        """Notes that the answer is whole; only figures may follow."""
        self._ended = self._ended or monotonic()

    @property
    def ended(self) -> bool:
        return self._ended is not None

    def deadline(self) -> float:
        times = self._patience
        if self._ended is not None:
            return self._ended + times.figures
        if self._token is None:
            return self._asked + times.first_token
        return min(self._sign + times.silence, self._token + times.first_token)

    def silent(self, where: str) -> ServerFailure:
        """The failure to raise when the deadline has passed."""
        times = self._patience
        if self._token is None:
            return silent(where, times.first_token, "no token")
        quiet = self._sign + times.silence <= self._token + times.first_token
        return silent(where, times.silence) if quiet else silent(where, times.first_token, "no token")


class Connection:
    """HTTP to the server at one address. Every request has a connection of its own, so that a server that was started
    anew answers the next one, and so that closing it cancels the question."""

    def __init__(self, address: ServerAddress, patience: Patience) -> None:
        """Connect to nothing yet. Raises ``ServerFailure`` for an address that can't be used."""
        self.patience = patience
        self.keys = Keys(address)
        self._root, self._interface = root_of(address.url)
        self.where = str(self._root).rstrip("/")
        """The address as a person would write it."""
        limits = httpx2.Limits(max_keepalive_connections=0)
        proxy = None if is_this_machine(self._root.host) else proxy_for(self._root)
        self._proxy = without_password(proxy) if proxy else ""
        try:
            self._client = httpx2.AsyncClient(
                headers=_headers(address),
                timeout=httpx2.Timeout(None, connect=patience.connect),
                transport=httpx2.AsyncHTTPTransport(limits=limits, proxy=httpx2.Proxy(proxy) if proxy else None),
            )
        except (ValueError, ImportError, OSError, httpx2.InvalidURL) as error:
            raise ServerFailure(
                f"The way to {self.where} can't be set up: {sentence(str(error))}",
                "Look at the variables HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE.",
            ) from None

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def get(self, path: str) -> Any:
        """The JSON at a path; raises ``ServerFailure``."""
        text = await self.get_text(path)
        try:
            return parsed(text.removeprefix("\ufeff"))
        except ValueError:
            raise unreadable(self.where, self.keys.redacted(text)) from None

    async def takes_questions(self, path: str, seconds: float) -> bool:
        """Whether something at a path objects to an empty question, or answers it."""
        try:
            async with asyncio.timeout(seconds), self._response("POST", path, {}):
                return True
        except TimeoutError:
            return False
        except ServerFailure as failure:
            return failure.vague

    async def get_text(self, path: str) -> str:
        """The text at a path; raises ``ServerFailure``."""
        try:
            async with asyncio.timeout(self.patience.answer), self._response("GET", path) as response:
                return (await _body(response, [])).decode("utf-8", "replace")
        except TimeoutError:
            raise silent(self.where, self.patience.answer) from None

    async def stream(self, path: str, body: Mapping[str, Any], clock: AnswerDeadline) -> AsyncGenerator[Json | str]:
        """The events of the answer to a question, to its end, and words that are none; raises ``ServerFailure``. An
        answer that is no stream is one event. ``clock``: whoever reads tells it what the events were. Close it to
        cancel the question."""
        framing = Framing()
        async with self._asked(path, body, clock) as response:
            parts = aiter(response.aiter_bytes())
            chunk: bytes | None = b""
            while chunk is not None and not framing.done:
                failure = None
                try:
                    chunk = await self._next(parts, clock)
                except ServerFailure as error:
                    chunk, failure = None, error
                with self._failures():
                    events = framing.end() if chunk is None else framing.feed(chunk)
                for event in events:
                    yield event
                if failure is not None and not (framing.done or clock.ended):
                    raise failure
        if not (framing.done or clock.ended):
            raise broke_off(self.where)

    async def _next(self, parts: AsyncIterator[bytes], clock: AnswerDeadline) -> bytes | None:
        """The next bytes; None at the end, which a whole answer also has where its connection stays open."""
        try:
            with self._failures():
                async with asyncio.timeout_at(clock.deadline()):
                    chunk = await anext(parts, None)
        except TimeoutError:
            if clock.ended:
                return None
            raise clock.silent(self.where) from None
        clock.sign()
        return chunk

    @asynccontextmanager
    async def _asked(self, path: str, body: Mapping[str, Any], clock: AnswerDeadline) -> AsyncIterator[httpx2.Response]:
        """Posts a question and yields the response. Raises ``ServerFailure``."""
        async with AsyncExitStack() as open_:
            try:
                async with asyncio.timeout_at(clock.deadline()):
                    response = await open_.enter_async_context(self._response("POST", path, body))
            except TimeoutError:
                raise clock.silent(self.where) from None
            clock.sign()
            yield response

    @asynccontextmanager
    async def _response(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """Yields a response whose status is a success, and whose body has not been read."""
        with self._failures():
            address = self._interface + path.removeprefix(INTERFACE) if path.startswith(INTERFACE) else path
            url = self._root.copy_with(path=self._root.path.rstrip("/") + address)
            response = await self._follow(self._client.build_request(method, url, json=body))
            try:
                if not response.is_success:
                    error_body = self.keys.redacted(_json_of(await self._error(response)))
                    raise refused(self.where, response.status_code, response.headers, error_body, self._proxy)
                yield response
            finally:
                await response.aclose()

    async def _error(self, response: httpx2.Response) -> bytes:
        """The body of a refusal, as far as it comes."""
        parts: list[bytes] = []
        with suppress(TimeoutError, Endless, httpx2.HTTPError, httpx2.StreamError, OSError, EOFError):
            async with asyncio.timeout(self.patience.answer):
                await _body(response, parts)
        return b"".join(parts)

    async def _follow(self, request: httpx2.Request) -> httpx2.Response:
        """Redirects stay with this server: a key goes to nobody else."""
        for _ in range(MOST_REDIRECTS):
            try:
                response = await self._client.send(request, stream=True)
            except httpx2.RemoteProtocolError as error:
                if "location" in str(error).lower():
                    raise ServerFailure(f"{self.where} sends us on to what is no address.", _ANOTHER_URL) from None
                raise
            following = response.next_request
            if following is None:
                if response.is_redirect or response.status_code in (301, 302, 303, 307, 308):
                    await response.aclose()
                    raise ServerFailure(f"{self.where} sends us on, and doesn't say where to.", _ANOTHER_URL)
                return response
            await response.aclose()
            try:
                other, _ = root_of(str(following.url.copy_with(query=None, fragment=None, userinfo=b"")))
            except ServerFailure:
                raise ServerFailure(f"{self.where} sends us on to what is no address.", _ANOTHER_URL) from None
            if not same_server(request.url, following.url):
                raise ServerFailure(
                    f"{self.where} sends us on to another server, {other.copy_with(path='/')}. Nothing was sent there.",
                    "If you trust it, attach to that one.",
                )
            if following.method != request.method:
                lost = f"{self.where} sends us on to {other}, and loses the question on the way."
                raise ServerFailure(lost, f"Attach to {other}")
            request = following
        raise ServerFailure(f"{self.where} sends us round in circles.", _ANOTHER_URL)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except TimeoutError:
            raise
        except Endless:
            raise endless(self.where) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError, EOFError, ValueError) as error:
            raise transport(self.where, error, self._proxy) from None


def _headers(address: ServerAddress) -> dict[str, str]:
    """The request's headers, the key among them. Raises ``ServerFailure`` where one can't be sent; its words hold no
    value."""
    headers = {"Accept-Encoding": "identity", "User-Agent": "dflash-chat", **address.headers}
    if address.key and not address.key.strip():
        raise ServerFailure("The key is blank.", "Look at what it was read from, or leave it out.")
    if address.key:
        headers["Authorization"] = f"Bearer {address.key}"
    for name, value in headers.items():
        if not (name.isascii() and value.isascii() and value.isprintable() and name.isprintable() and ":" not in name):
            what = "key" if name == "Authorization" else f"header {sentence(name)}"
            raise ServerFailure(f"The {what} holds characters that can't be sent.", "Look at what it was read from.")
    return headers


async def _body(response: httpx2.Response, parts: list[bytes]) -> bytes:
    """Reads a whole body into ``parts``. Raises ``Endless`` for one that is too long."""
    size = 0
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > MOST_EVENT:
            raise Endless
        parts.append(chunk)
    return b"".join(parts)


def _json_of(body: bytes) -> Any:
    """The JSON of an error, even where it came as a server-sent event; otherwise its text."""
    framing = Framing()
    try:
        events = [*framing.feed(body), *framing.end()]
    except Endless:
        events = []
    return next((event for event in events if isinstance(event, dict)), None) or body.decode("utf-8", "replace")
