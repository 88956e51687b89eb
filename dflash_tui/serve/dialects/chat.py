"""OpenAI's ``/v1/chat/completions`` and ``/v1/completions``, with what llama.cpp and vLLM add to them."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar
from uuid import uuid4

from engine.commands import ToolCall

from ..answers import Piece, chat_logprobs, text_logprobs
from ..requests import CompletionRequest, Offer, RequestKind, parse
from .dialect import About, Dialect, Json, arguments_of


class _Completions(Dialect):
    """What both addresses have in common: a choice, which is a chunk's or the whole one, and figures beside it."""

    ends_with = b"data: [DONE]\n\n"
    kind: ClassVar[RequestKind]
    named: ClassVar[str]
    """What ids begin with."""

    def __init__(self, wanted: CompletionRequest, about: About) -> None:
        super().__init__(wanted, about)
        self._head = {
            "id": f"{self.named}-{uuid4().hex}",
            "object": self.objects(wanted.stream),
            "created": int(time.time()),
            "model": about.model,
            "system_fingerprint": about.fingerprint,
        }
        self._offset = 0

    @classmethod
    def read(cls, data: Json, offer: Offer) -> CompletionRequest:
        return parse(cls.kind, data, offer)

    @classmethod
    @abstractmethod
    def objects(cls, stream: bool) -> str:
        """What answers call themselves."""

    @abstractmethod
    def choice(self, piece: Piece) -> Json:
        """A piece of the answer in a stream."""

    @abstractmethod
    def whole_choice(self, piece: Piece) -> Json:
        """The whole answer."""

    @abstractmethod
    def logprobs(self, piece: Piece, offset: int) -> Json:
        """The probabilities of a piece's tokens. ``offset``: the character at which the piece begins."""

    def opened(self, dflash_events: Sequence[Json]) -> list[Json]:
        return [self._chunk(Piece(), dflash_events)] if dflash_events else []

    def wrote(self, piece: Piece, dflash_events: Sequence[Json]) -> list[Json]:
        return [self._chunk(piece, dflash_events)]

    def ended(self, reason: str, dflash_events: Sequence[Json]) -> list[Json]:
        end = self._chunk(Piece(), dflash_events)
        end["choices"][0] |= {"finish_reason": reason, "stop_reason": self.answer.stop_reason}
        if not self.wanted.usage:
            return [end | {"timings": self.answer.timings()}]
        return [end, {**self._head, "choices": [], **self._figures()}]

    def complete(self, piece: Piece, reason: str) -> Json:
        choice: Json = {"index": 0, "finish_reason": reason, **self.whole_choice(piece)}
        choice["logprobs"] = self.logprobs(piece, 0) if self.wanted.logprobs else None
        choice["stop_reason"] = self.answer.stop_reason
        if self.wanted.token_ids:
            choice["token_ids"] = _ids(piece)
        return {**self._head, "choices": [choice], **self._figures()}

    def _chunk(self, piece: Piece, dflash_events: Sequence[Json], **opening: str) -> Json:
        wanted = self.wanted
        choice: Json = {"index": 0, **self.choice(piece)}
        if opening:
            choice["delta"] = {**opening, **choice["delta"]}
        choice["logprobs"] = self.logprobs(piece, self._offset) if piece.tokens and wanted.logprobs else None
        choice["finish_reason"] = None
        self._offset += sum(len(token.text) for token in piece.tokens)
        if wanted.token_ids:
            choice["token_ids"] = _ids(piece)
        chunk = {**self._head, "choices": [choice], **self.dflash_fields(dflash_events)}
        if wanted.usage_always:
            chunk["usage"] = self.answer.usage()
        if wanted.timings and piece.tokens:
            chunk["timings"] = self.answer.timings()
        return chunk

    def _figures(self) -> Json:
        answer, most = self.answer, self.about.most_drafted
        return {"usage": answer.usage(), "timings": answer.timings(), "metrics": answer.metrics(most)}


def _ids(piece: Piece) -> list[int | None]:
    return [token.id for token in piece.tokens]


class Chat(_Completions):
    path, kind, named = "/v1/chat/completions", "chat", "chatcmpl"

    def __init__(self, wanted: CompletionRequest, about: About) -> None:
        super().__init__(wanted, about)
        self._num_calls = 0

    @classmethod
    def objects(cls, stream: bool) -> str:
        return "chat.completion.chunk" if stream else "chat.completion"

    def opened(self, dflash_events: Sequence[Json]) -> list[Json]:
        return [self._chunk(Piece(), dflash_events, role="assistant", content="")]

    def choice(self, piece: Piece) -> Json:
        delta: Json = {"reasoning_content": piece.thought} if piece.thought else {}
        if piece.text:
            delta["content"] = piece.text
        if piece.calls:
            first, self._num_calls = self._num_calls, self._num_calls + len(piece.calls)
            delta["tool_calls"] = [{"index": n, **_call(call)} for n, call in enumerate(piece.calls, first)]
        return {"delta": delta}

    def whole_choice(self, piece: Piece) -> Json:
        message: Json = {"role": "assistant", "content": None if piece.calls and not piece.text else piece.text}
        if piece.thought:
            message["reasoning_content"] = piece.thought
        if piece.calls:
            message["tool_calls"] = [_call(call) for call in piece.calls]
        return {"message": message | {"refusal": None}}

    def logprobs(self, piece: Piece, offset: int) -> Json:
        return chat_logprobs(piece.tokens)


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments_of(call)}}


class Text(_Completions):
    path, kind, named = "/v1/completions", "text", "cmpl"

    @classmethod
    def objects(cls, stream: bool) -> str:
        return "text_completion"

    def choice(self, piece: Piece) -> Json:
        return {"text": piece.text}

    whole_choice = choice

    def logprobs(self, piece: Piece, offset: int) -> Json:
        return text_logprobs(piece.tokens, offset)
