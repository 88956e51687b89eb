"""One event of a stream, whatever its dialect: which text it brings, and what beside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import exp
from typing import Any

from engine.events import Channel, FinishReason

from .reading import count, counts, mapping, real, sequence, words

Piece = tuple[Channel, str]
"""A run of text of one channel."""


@dataclass(frozen=True, slots=True)
class Logprob:
    """A token's own text, as the server gives it where it is asked for probabilities."""

    text: str
    probability: float | None


@dataclass(frozen=True, slots=True)
class Chunk:
    """An event of a chat completion's stream."""

    time: float
    """Seconds since the question was sent."""
    pieces: tuple[Piece, ...]
    ids: tuple[int, ...]
    logprobs: tuple[Logprob, ...]
    finish: str
    """Why the answer ends; empty before its end."""
    data: Mapping[str, Any]
    """All of it."""

    @property
    def usage(self) -> Mapping[str, Any]:
        return mapping(self.data.get("usage"))

    @property
    def timings(self) -> Mapping[str, Any]:
        return mapping(self.data.get("timings"))

    @property
    def metrics(self) -> Mapping[str, Any]:
        return mapping(self.data.get("metrics"))


def read_chunk(data: Mapping[str, Any], time: float) -> Chunk:
    """Only the first choice counts: no more than one is ever asked for. llama.cpp's own completions have none: their
    fields stand at the top."""
    choice = next((mapping(each) for each in sequence(data.get("choices"))), mapping(None))
    pieces = tuple(_pieces(choice))
    ended = words(choice.get("finish_reason"))
    if "choices" not in data and (own := words(data.get("content"))):
        pieces = (("answer", own),)
    if data.get("stop") is True:
        ended = "length" if data.get("stop_type") == "limit" else "stop"
    return Chunk(
        time,
        pieces,
        counts(choice.get("token_ids")) or (),
        tuple(_logprobs(mapping(choice.get("logprobs")))),
        ended,
        data,
    )


def _pieces(choice: Mapping[str, Any]) -> Iterator[Piece]:
    delta = mapping(choice.get("delta")) or mapping(choice.get("message"))
    if thought := words(delta.get("reasoning_content")) or words(delta.get("reasoning")):
        yield "thought", thought
    if answer := words(delta.get("content")) or words(choice.get("text")):
        yield "answer", answer


def _logprobs(logprobs: Mapping[str, Any]) -> Iterator[Logprob]:
    for each in sequence(logprobs.get("content")):
        entry = mapping(each)
        given = entry.get("logprob")
        below = real(-given) if isinstance(given, int | float) and not isinstance(given, bool) else None
        yield Logprob(words(entry.get("token")), None if below is None else round(exp(-below), 3))


def finish_reason(said: str, num_tokens: int | None, most: int) -> FinishReason:
    """A server says ``length`` also where its context was full before ``most`` tokens."""
    if said != "length":
        return "error" if said == "error" else "stop"
    return "context" if num_tokens is not None and num_tokens < most else "length"


@dataclass(frozen=True, slots=True)
class Prompt:
    """How long a question was, as far as a stream has told."""

    tokens: int = 0
    reused: int = 0


def usage_prompt(chunk: Chunk) -> Prompt | None:
    """What its ``usage`` says of the prompt."""
    tokens = count(chunk.usage.get("prompt_tokens"))
    if tokens is None:
        return None
    details = mapping(chunk.usage.get("prompt_tokens_details"))
    return Prompt(tokens, min(count(details.get("cached_tokens")) or 0, tokens))
