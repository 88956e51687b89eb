"""Reads the models of a server, from a list in any of the forms that servers use, and picks the one to ask first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .error_texts import error_in
from .failures import ServerFailure, in_stream
from .transport.connection import Connection
from .untrusted import count, mapping, sequence, words

_OTHERWISE = re.compile(
    r"embed|rerank|whisper|transcri|moderation|dall-e|diffusion|text-to-speech|speech-to-text|(?<![a-z])(?:bge|gte|e5|"
    r"tts|stt|asr|clip|siglip|colbert|minilm|gpt-image|parakeet|kokoro)(?![a-z])",
    re.IGNORECASE,
)
"""Matches names and kinds of models that don't chat."""


async def models_of(connection: Connection, wanted: str) -> tuple[Sequence[Any], ServerFailure | None]:
    """The server's models with the one to ask first in front, or the failure that says why there is none."""
    try:
        body = await connection.get("/v1/models")
    except ServerFailure as failure:
        return (), failure
    said = mapping(body)
    if error := error_in(said, [], True):
        return (), in_stream(connection.where, connection.keys.redacted(error), False)
    listed = sequence(body) or sequence(said.get("data")) or sequence(said.get("models"))
    return sorted(map(_entry, listed), key=lambda entry: (entry["id"] != wanted, not _chats(entry))), None


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


def names_of(listed: Sequence[Any]) -> tuple[str, ...]:
    return tuple(name for each in listed if (name := words(mapping(each).get("id"))))


def context_of(listed: Sequence[Any]) -> int:
    first = mapping(next(iter(listed), None))
    return count(first.get("max_model_len")) or count(mapping(first.get("meta")).get("n_ctx")) or 0
