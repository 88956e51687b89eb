"""Decides who may ask: whoever has the key, by a name of this server, and no foreign web page. ASGI middleware."""

from __future__ import annotations

import hmac
import socket
from collections.abc import Callable, Collection
from contextlib import suppress
from hashlib import sha256
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from .failures import ApiFailure

LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
PRIVATE_ENDINGS = (".localhost", ".internal")
"""Endings of names that nobody can register and that containers use for this machine, so that no web page has one."""
OPEN = frozenset({"/health"})
"""Paths that are answered without a key, for whoever watches and restarts servers."""


class Guard:
    """Refuses requests that nobody here meant to send. ``names``: what a request's Host may be, None for anything;
    without such a list a web page could reach a server on this machine by a name of its own that leads here (DNS
    rebinding)."""

    def __init__(
        self, app: ASGIApp, key: str | None, names: Collection[str] | None, refuse: Callable[[ApiFailure, str], ASGIApp]
    ) -> None:
        self._app = app
        self._key = None if key is None else _digest(key)
        self._names = names
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["type"] == "http":
                self._check(scope["path"], Headers(scope=scope))
        except ApiFailure as failure:
            await self._refuse(failure, scope["path"])(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _check(self, path: str, headers: Headers) -> None:
        host = headers.get("host", "")
        if self._names is not None and host and not _is_private(_name(f"//{host}"), self._names):
            message = f"This server listens on this machine alone, which isn't called {host!r}. Ask it by its address, "
            message += (
                "127.0.0.1, or let a proxy send Host: localhost. With --host 0.0.0.0 --api-key KEY it has any name."
            )
            raise ApiFailure(403, message)
        origin = headers.get("origin")
        if origin is not None and (origin == "null" or (origin.startswith("http") and urlsplit(origin).netloc != host)):
            raise ApiFailure(403, "Web pages of other sites can't ask this server.")
        if self._key is not None and path not in OPEN:
            scheme, _, given = headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer":
                given = headers.get("x-api-key", headers.get("api-key", ""))  # of Anthropic's clients, and of Azure's
            # Digests are of one length, so that comparing them takes as long for any key.
            if not hmac.compare_digest(_digest(given.strip()), self._key):
                message = "The API key is missing or wrong. Send it as: Authorization: Bearer KEY"
                raise ApiFailure(401, message, code="invalid_api_key")


def _digest(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogateescape")).digest()


def _is_private(name: str | None, names: Collection[str]) -> bool:
    """Whether no web page can have this name, whatever name servers say: an address, or a name that can't be
    registered."""
    if name is None:
        return False
    name = name.removesuffix(".")
    if name in names or name.endswith(PRIVATE_ENDINGS):
        return True
    if name.removesuffix(".local") == socket.gethostname().lower().removesuffix(".local"):
        return True  # this machine's own
    with suppress(ValueError):
        return bool(ip_address(name))
    return False


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
