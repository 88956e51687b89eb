"""HTTP to one server: asking for JSON, posting a question, and hearing its stream. What goes wrong becomes a
:class:`ServerFailure`; keys go to this server alone, and into no sentence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import httpx2

from dflash_tui.core.settings.addresses import KEY_VARIABLE
from dflash_tui.core.settings.servers import ServerAddress

from .failures import ServerFailure, refused, transport, web_page
from .reading import mapping, parsed, sentence

MOST_BODY = 8 << 20
"""Bytes of an answer that is no stream."""
MOST_EVENT = 1 << 20
MOST_EMPTY = 4 << 20
"""Bytes of a stream without an event."""
MOST_REDIRECTS = 5


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds to wait."""

    connect: float = 10.0
    answer: float = 20.0
    """For what is known at once, such as the list of models."""
    first_token: float = 600.0
    """From the question on: a long prompt takes its time, and other people's questions come first."""
    silence: float = 120.0
    """Between two events of an answer."""
    loading: float = 1800.0
    """For a server that says that it loads its model."""


class Connection:
    """To the server at an address. Every request has a connection of its own, so that a server that was started anew
    answers the next one, and closing it cancels the question."""

    def __init__(self, address: ServerAddress, patience: Patience) -> None:
        """Raises ``ServerFailure`` for an address that can't be used."""
        self._patience = patience
        self._root = root_of(address.url)
        self.where = str(self._root).rstrip("/")
        """The address as a person would write it."""
        timeout = httpx2.Timeout(patience.answer, connect=patience.connect, pool=None)
        limits = httpx2.Limits(max_keepalive_connections=0)
        try:
            self._client = httpx2.AsyncClient(
                headers=_headers(address), timeout=timeout, limits=limits, trust_env=not address.direct
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
        async with self._response("GET", path) as response:
            return _json(await _body(response), response, self.where)

    async def get_text(self, path: str) -> str:
        """The text at a path; raises ``ServerFailure``."""
        async with self._response("GET", path) as response:
            return (await _body(response)).decode("utf-8", "replace")

    async def stream(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[Mapping[str, Any]]:
        """The events of the answer to a question, to its end; raises ``ServerFailure``. An answer that is no stream is
        one event. Close it to cancel the question."""
        async with self._response("POST", path, body) as response:
            if "event-stream" not in response.headers.get("content-type", ""):
                yield mapping(_json(await _body(response), response, self.where))
                return
            response.stream = meter = _Meter(response.stream)
            events = aiter(httpx2.EventSource(response, max_event_size=MOST_EVENT))
            wait = self._patience.first_token
            while True:
                with self._failures():
                    async with asyncio.timeout(wait):
                        event = await anext(events, None)
                if event is None or event.data.strip() == "[DONE]":
                    return
                meter.empty = 0
                data = mapping(_json(event.data, response, self.where))
                if "prompt_progress" not in data:  # until then it reads the question
                    wait = self._patience.silence
                yield data

    @asynccontextmanager
    async def _response(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """A response of success, whose body has not been read."""
        with self._failures():
            url = self._root.copy_with(path=self._root.path.rstrip("/") + path)
            request = self._client.build_request(method, url, json=body)
            if body is not None:
                times = self._patience
                request.extensions["timeout"] = httpx2.Timeout(None, connect=times.connect).as_dict()
            async with asyncio.timeout(self._patience.answer if body is None else self._patience.first_token):
                response = await self._follow(request)
            try:
                if not response.is_success:
                    async with asyncio.timeout(self._patience.answer):
                        said = await _body(response)
                    raise refused(self.where, response.status_code, response.headers, _said(said))
                yield response
            finally:
                await response.aclose()

    async def _follow(self, request: httpx2.Request) -> httpx2.Response:
        """Redirects stay with this server: a key goes to nobody else."""
        for _ in range(MOST_REDIRECTS):
            response = await self._client.send(request, stream=True)
            following = response.next_request
            if following is None:
                return response
            await response.aclose()
            other = root_of(str(following.url.copy_with(query=None, fragment=None)))
            if not _same_server(request.url, following.url):
                raise ServerFailure(
                    f"{self.where} sends us on to another server, {other.copy_with(path='/')}. Nothing was sent there.",
                    "If you trust it, attach to that one.",
                )
            if following.method != request.method:
                lost = f"{self.where} sends us on to {other}, and loses the question on the way."
                raise ServerFailure(lost, f"Attach to {other}")
            request = following
        raise ServerFailure(f"{self.where} sends us round in circles.", "Look at the URL, and at proxies in between.")

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError, EOFError, ValueError) as error:
            raise transport(self.where, error) from None


class _Meter(httpx2.AsyncByteStream):
    """A body, as long as it brings events."""

    def __init__(self, body: httpx2.AsyncByteStream | httpx2.SyncByteStream) -> None:
        assert isinstance(body, httpx2.AsyncByteStream)
        self._body = body
        self.empty = 0
        """Bytes since the last event."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._body:
            self.empty += len(part)
            if self.empty > MOST_EMPTY:
                raise httpx2.SSEError("no event in so many bytes")
            yield part

    async def aclose(self) -> None:
        await self._body.aclose()


def root_of(url: str) -> httpx2.URL:
    """Where a server's paths begin, from its address with or without ``/v1``. Raises ``ServerFailure``."""
    hint = "An address looks like http://host:8000"
    try:
        root = httpx2.URL(url.strip())
    except (httpx2.InvalidURL, ValueError, TypeError):
        raise ServerFailure("The server's address is no URL.", hint) from None
    if root.scheme not in ("http", "https") or not root.host:
        raise ServerFailure("The server's address is no URL of http or https.", hint)
    if root.userinfo or root.query:
        raise ServerFailure(
            "The server's address holds a password or a query.",
            f"Its key goes into {KEY_VARIABLE}, or where key_variable of [servers.NAME] says.",
        )
    return root.copy_with(path=root.path.rstrip("/").removesuffix("/v1").rstrip("/") or "/", fragment=None)


def _same_server(here: httpx2.URL, there: httpx2.URL) -> bool:
    """The same host and port, or the same host with TLS now."""
    if (here.scheme, here.host, here.port) == (there.scheme, there.host, there.port):
        return True
    encrypted = (here.scheme, there.scheme) == ("http", "https") and here.port is there.port is None
    return here.host == there.host and encrypted


def _headers(address: ServerAddress) -> dict[str, str]:
    """Raises ``ServerFailure`` where one can't be sent; its words hold no value."""
    headers = {"Accept-Encoding": "identity", "User-Agent": "dflash-chat", **address.headers}
    if address.key:
        headers["Authorization"] = f"Bearer {address.key}"
    for name, value in headers.items():
        if not (name.isascii() and value.isascii() and value.isprintable() and name.isprintable() and ":" not in name):
            what = "key" if name == "Authorization" else f"header {sentence(name)}"
            raise ServerFailure(f"The {what} holds characters that can't be sent.", "Look at what it was read from.")
    return headers


async def _body(response: httpx2.Response) -> bytes:
    parts, size = [], 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > MOST_BODY:
            raise httpx2.SSEError("too long a body")
        parts.append(part)
    return b"".join(parts)


def _json(text: str | bytes, response: httpx2.Response, where: str) -> Any:
    try:
        return parsed(text)
    except ValueError:
        raise web_page(where, response.headers.get("content-type", ""), text) from None


def _said(body: bytes) -> Any:
    """The JSON of an error, or None."""
    try:
        return parsed(body)
    except ValueError:
        return None
