"""Normalises addresses as clients spell them: doubled and trailing slashes, ``/v1`` left out or said twice. ASGI
middleware."""

from __future__ import annotations

import re

from starlette.types import ASGIApp, Receive, Scope, Send

_AUTHORITY = re.compile("^https?://[^/]*", re.IGNORECASE)
"""Matches what stands before the path where a client takes this server for its proxy."""
_SLASHES = re.compile("/{2,}")
_AZURE = re.compile("^openai/(deployments/[^/]+/)?")
NOT_HAD = {
    "/v1/embeddings": "no embeddings",
    "/api/embed": "no embeddings",
    "/api/embeddings": "no embeddings",
    "/v1/rerank": "no rankings",
    "/v1/moderations": "no judgements",
    "/v1/images/generations": "no pictures",
    "/v1/audio/speech": "no speech",
    "/v1/audio/transcriptions": "no transcriptions",
}
"""What clients ask other servers for, by address, and what this one would have to make."""
_UNDER_V1 = re.compile("chat/completions|completions|responses|messages(/count_tokens)?|models(/.*)?")
_AT_THE_TOP = re.compile("health|metrics|dflash|api/(chat|generate|tags|ps|show|version)")


class Paths:
    """Gives each address the one spelling that the routes have."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "path": plain(scope["path"])}
        await self._app(scope, receive, send)


def plain(path: str) -> str:
    """The address in the spelling of the routes; one that leads nowhere stays as it is."""
    rest = _AZURE.sub("", _SLASHES.sub("/", _AUTHORITY.sub("", path)).strip("/"))
    while rest.startswith("v1/"):
        rest = rest.removeprefix("v1/")
    if _UNDER_V1.fullmatch(rest) or f"/v1/{rest}" in NOT_HAD:
        return f"/v1/{rest}"
    return f"/{rest}" if _AT_THE_TOP.fullmatch(rest) or f"/{rest}" in NOT_HAD else path
