"""What all dialects share: a request is read from a client's words, and its answer goes back in them, piece by piece or
whole."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from engine.commands import ToolCall
from engine.events import EngineError, Event, PrefillDone, Step, TurnFinished, TurnStarted, event_to_dict

from ..answers import AnswerProgress, Piece
from ..failures import ApiFailure
from ..requests import CompletionRequest, Offer

Json = dict[str, Any]
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode  # made once: there are many chunks


def encoded(data: Any) -> bytes:
    return _encode(data).encode()


def named_event(data: Json) -> bytes:
    """A server-sent event that says its type twice, as clients of some dialects expect it."""
    return b"event: " + str(data["type"]).encode() + b"\ndata: " + encoded(data) + b"\n\n"


def arguments_of(call: ToolCall) -> str:
    """The call's arguments as JSON."""
    return _encode(call.arguments)


@dataclass(frozen=True, slots=True)
class About:
    """The model that answers, as answers name it."""

    model: str
    fingerprint: str
    """The program and its version."""
    most_drafted: int
    """Tokens of the longest draft."""


class Dialect(ABC):
    """One request and its answer, in one way of saying them. A subclass reads the request and writes the answer's
    pieces; its objects are JSON."""

    path: ClassVar[str]
    media_type: ClassVar[str] = "text/event-stream; charset=utf-8"
    ends_with: ClassVar[bytes] = b""
    """What a stream ends with, behind its last object."""

    def __init__(self, wanted: CompletionRequest, about: About) -> None:
        self.wanted = wanted
        self.about = about
        self.answer = AnswerProgress(wanted)
        self._whole = Piece()
        self._events: list[Json] = []

    @classmethod
    @abstractmethod
    def read(cls, data: Json, offer: Offer) -> CompletionRequest:
        """What a body asks for. Raises :class:`ApiFailure` for what can't be done as asked."""

    @classmethod
    def at_once(cls, data: Json, model: str) -> Json | None:
        """The answer to a body that asks the model for nothing; None for others."""
        return None

    @classmethod
    def error(cls, failure: ApiFailure) -> Json:
        """What is sent in the place of an answer."""
        return failure.body()

    @classmethod
    def frame(cls, data: Json) -> bytes:
        """An object of a stream as it is sent."""
        return b"data: " + encoded(data) + b"\n\n"

    def sign_of_life(self) -> bytes:
        """What a stream says while it has nothing to say, and clients skip: a comment of server-sent events."""
        return b": wait\n\n"

    @abstractmethod
    def opened(self, dflash_events: Sequence[Json]) -> list[Json]:
        """What a stream begins with. ``dflash_events``: events that come along, where the request wants events."""

    @abstractmethod
    def wrote(self, piece: Piece, dflash_events: Sequence[Json]) -> list[Json]:
        """What a piece of the answer makes."""

    @abstractmethod
    def ended(self, reason: str, dflash_events: Sequence[Json]) -> list[Json]:
        """What a stream ends with. ``reason``: ``stop``, ``length`` or ``tool_calls``."""

    @abstractmethod
    def complete(self, piece: Piece, reason: str) -> Json:
        """A whole answer as one object."""

    def failed(self, failure: ApiFailure) -> Json:
        """What a client gets in the place of an answer, or behind the beginning of one."""
        return self.error(failure) | ({"dflash": self._events} if self._events else {})

    def whole(self, finished: TurnFinished) -> Json:
        """The answer as one object."""
        return self.complete(self._whole, self.answer.finish_reason(finished.reason)) | self.dflash_fields(self._events)

    def take(self, event: Event) -> list[Json]:
        """The objects that an event makes. Without a stream they are collected for :meth:`whole`."""
        dflash_events = [event_to_dict(event)] if self.wanted.events else []
        if not self.wanted.stream or isinstance(event, EngineError | TurnFinished):
            self._events += dflash_events
        chunks: list[Json] = []
        match event:
            case TurnStarted():
                self.answer.begin(event)
                chunks = self.opened(dflash_events) if self.wanted.stream else []
            case PrefillDone():
                self.answer.prefilled(event)
                chunks = self._written(Piece(), dflash_events)
            case Step():
                chunks = self._written(self.answer.add(event), dflash_events)
            case TurnFinished():
                chunks = self._written(self.answer.rest(), [])
                if self.wanted.stream and event.reason != "error":
                    chunks += self.ended(self.answer.finish_reason(event.reason), dflash_events)
        return chunks

    def _written(self, piece: Piece, dflash_events: list[Json]) -> list[Json]:
        self._whole.text += piece.text
        self._whole.thought += piece.thought
        self._whole.calls += piece.calls
        if not self.wanted.stream:
            self._whole.tokens += piece.tokens
            return []
        wanted = self.wanted
        says = piece.text or piece.thought or piece.calls
        figures = piece.tokens and (wanted.token_ids or wanted.logprobs or wanted.timings)
        return self.wrote(piece, dflash_events) if says or figures or dflash_events else []

    def dflash_fields(self, events: Sequence[Json]) -> Json:
        """The field in which events come along, where the request wants them."""
        return {"dflash": list(events)} if self.wanted.events else {}
