"""Finds out what answers at an address: by asking for all that tells servers apart at once, or as the user says."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any

from dflash_tui.core.settings.servers import ServerAddress

from .dialects import CHAT, KINDS, OpenAi, ServerFacts
from .error_texts import error_in
from .failures import Loading, NoModel, ServerFailure, Unusable, in_stream, silent
from .transport.connection import Connection
from .untrusted import mapping, sequence, words

PATHS = ("/dflash", "/props", "/slots", "/version", "/metrics", "/server_info", "/get_server_info")
PROBE_SECONDS = 2.0
"""How long whatever answers is waited for, once something has."""
ANYWAY = "--dialect openai asks it all the same."
_OTHERWISE = re.compile(
    r"embed|rerank|whisper|transcri|moderation|dall-e|diffusion|text-to-speech|speech-to-text|(?<![a-z])(?:bge|gte|e5|"
    r"tts|stt|asr|clip|siglip|colbert|minilm|gpt-image|parakeet|kokoro)(?![a-z])",
    re.IGNORECASE,
)
"""Matches names and kinds of models that don't chat."""


async def ask_server(connection: Connection, address: ServerAddress) -> ServerFacts:
    """Returns what the server at ``address`` says of itself. One without a list of models is asked all the same. Raises
    ``ServerFailure`` where no chat server answers."""
    paths = () if address.dialect == "openai" else PATHS
    asking = {path: asyncio.ensure_future(_answer(connection, path)) for path in paths}
    listing = asyncio.ensure_future(_listed(connection, address.model))
    try:
        await asyncio.wait([listing, *asking.values()], timeout=PROBE_SECONDS)
        replies = {path: task.result() for path, task in asking.items() if task.done()}
        if not (listing.done() or replies or address.dialect):
            await asyncio.wait([listing])
        listing_reply = listing.result() if listing.done() else silent(connection.where)
    finally:
        for task in (listing, *asking.values()):
            task.cancel()
    if loading := next((each for each in (listing_reply, *replies.values()) if isinstance(each, Loading)), None):
        raise loading
    answers = {path: each for path, each in replies.items() if not isinstance(each, ServerFailure)}
    listed = () if isinstance(listing_reply, ServerFailure) else listing_reply
    owner = words(mapping(next(iter(listed), None)).get("owned_by"))
    forced = address.dialect or next((name for name, kind in KINDS.items() if kind.owner == owner != ""), None)
    for name in [forced] if forced else KINDS:
        facts = (
            KINDS[name].facts_of(answers, listed, forced is not None) if forced or KINDS[name] is not OpenAi else None
        )
        if facts is not None:
            return facts
    if isinstance(listing_reply, ServerFailure) and not await connection.takes_questions(CHAT, PROBE_SECONDS):
        known = isinstance(listing_reply, Unusable | NoModel)
        raise ServerFailure(str(listing_reply), f"{listing_reply.hint} {ANYWAY}") if known else listing_reply
    return OpenAi.facts_of(answers, listed, False)


async def _answer(connection: Connection, path: str) -> Any:
    """What stands at a path, or the failure that says why nothing does."""
    try:
        return await (connection.get_text(path) if path == "/metrics" else connection.get(path))
    except ServerFailure as failure:
        return failure


async def _listed(connection: Connection, wanted: str) -> Sequence[Any] | ServerFailure:
    """The server's models with the one to ask first in front, or the failure that says why there is none."""
    body = await _answer(connection, "/v1/models")
    if isinstance(body, ServerFailure):
        return body
    fields = mapping(body)
    if error := error_in(fields, []):
        return in_stream(connection.where, connection.keys.redacted(error), False)
    listed = sequence(body) or sequence(fields.get("data")) or sequence(fields.get("models"))
    return sorted(map(_entry, listed), key=lambda entry: (entry["id"] != wanted, not _chats(entry)))


def _entry(listed: Any) -> Mapping[str, Any]:
    """A listed model as an object with the ``id`` under which it is asked."""
    entry = mapping(listed)
    names = (listed, entry.get("id"), entry.get("model"), entry.get("name"))
    return {**entry, "id": next((name for each in names if (name := words(each))), "")}


def _chats(entry: Mapping[str, Any]) -> bool:
    """Whether a model chats, as far as its name or kind tells: others of the list may embed, rank, draw, speak or
    listen."""
    kinds = [entry.get(name) for name in ("type", "task", "object", "model_type")]
    return not any(_OTHERWISE.search(words(each)) for each in (entry["id"], *kinds))
