"""Makes JSON of answers: chunks of a stream, or one object. Chats and plain completions differ here and nowhere
else."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from engine.events import EngineError, Event, PrefillDone, Step, TurnFinished, TurnStarted, event_to_dict

from .answers import Answer, Piece, chat_logprobs, text_logprobs
from .failures import ApiFailure
from .requests import CompletionRequest

Json = dict[str, Any]
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode  # made once: there are many chunks
DONE = b"data: [DONE]\n\n"


def encoded(data: Json) -> bytes:
    return _encode(data).encode()


def sent_event(data: Json) -> bytes:
    """The object as one server-sent event."""
    return b"data: " + encoded(data) + b"\n\n"


def _object(wanted: CompletionRequest) -> str:
    if wanted.kind == "text":
        return "text_completion"
    return "chat.completion.chunk" if wanted.stream else "chat.completion"


class Reply:
    """Turns the events of one answer into what a client reads."""

    def __init__(self, wanted: CompletionRequest, model: str, fingerprint: str, most_drafted: int) -> None:
        self._wanted = wanted
        self._chat = wanted.kind == "chat"
        self._most_drafted = most_drafted
        self._head = {
            "id": f"{'chatcmpl' if self._chat else 'cmpl'}-{uuid4().hex}",
            "object": _object(wanted),
            "created": int(time.time()),
            "model": model,
            "system_fingerprint": fingerprint,
        }
        self.answer = Answer(wanted)
        self._whole = Piece()
        self._events: list[Json] = []
        self._offset = 0

    def take(self, event: Event) -> list[Json]:
        """The chunks that an event makes. Without a stream they are collected for :meth:`whole`."""
        told = [event_to_dict(event)] if self._wanted.events else []
        if not self._wanted.stream or isinstance(event, EngineError | TurnFinished):
            self._events += told
        match event:
            case TurnStarted():
                self.answer.begin(event)
                chunks = self._opening(told)
            case PrefillDone():
                self.answer.prefilled(event)
                chunks = [self._chunk(Piece(), told)] if told else []
            case Step():
                chunks = self._round(self.answer.add(event), told)
            case TurnFinished():
                chunks = self._ending(event, told)
            case _:
                chunks = []
        return chunks if self._wanted.stream else []

    def failed(self, failure: ApiFailure) -> Json:
        """What a client gets in the place of an answer, or behind the beginning of one."""
        return failure.body() | ({"dflash": self._events} if self._events else {})

    def whole(self, finished: TurnFinished) -> Json:
        """The answer as one object."""
        piece, wanted = self._whole, self._wanted
        choice: Json = {"index": 0, "finish_reason": self.answer.finish_reason(finished.reason)}
        if self._chat:
            thought = {"reasoning_content": piece.thought} if piece.thought else {}
            choice["message"] = {"role": "assistant", "content": piece.text, **thought, "refusal": None}
        else:
            choice["text"] = piece.text
        choice["logprobs"] = self._logprobs(piece, 0)
        choice["stop_reason"] = self.answer.stop_reason
        if wanted.token_ids:
            choice["token_ids"] = [token.id for token in piece.tokens]
        return {**self._head, "choices": [choice], **self._figures(), **self._told(self._events)}

    def _opening(self, told: list[Json]) -> list[Json]:
        if not self._chat:
            return [self._chunk(Piece(), told)] if told else []
        return [self._chunk(Piece(), told, role="assistant", content="")]

    def _round(self, piece: Piece, told: list[Json]) -> list[Json]:
        self._whole.text += piece.text
        self._whole.thought += piece.thought
        if not self._wanted.stream:
            self._whole.tokens += piece.tokens
            return []
        wanted = self._wanted
        says = piece.text or piece.thought or (piece.tokens and (wanted.token_ids or wanted.logprobs or wanted.timings))
        return [self._chunk(piece, told)] if says or told else []

    def _ending(self, finished: TurnFinished, told: list[Json]) -> list[Json]:
        rest = Piece(self.answer.rest())
        self._whole.text += rest.text
        if not self._wanted.stream or finished.reason == "error":
            return []
        chunks = [self._chunk(rest, [])] if rest.text else []
        end = self._chunk(Piece(), told)
        end["choices"][0] |= {
            "finish_reason": self.answer.finish_reason(finished.reason), "stop_reason": self.answer.stop_reason,
        }  # fmt: skip
        if not self._wanted.usage:
            return [*chunks, end | {"timings": self.answer.timings()}]
        return [*chunks, end, {**self._head, "choices": [], **self._figures()}]

    def _chunk(self, piece: Piece, told: list[Json], **opening: str) -> Json:
        wanted = self._wanted
        choice: Json = {"index": 0}
        if self._chat:
            text = {"content": piece.text} if piece.text else {}
            thought = {"reasoning_content": piece.thought} if piece.thought else {}
            choice["delta"] = {**opening, **thought, **text}
        else:
            choice["text"] = piece.text
        choice["logprobs"] = self._logprobs(piece, self._offset) if piece.tokens else None
        choice["finish_reason"] = None
        self._offset += sum(len(token.text) for token in piece.tokens)
        if wanted.token_ids:
            choice["token_ids"] = [token.id for token in piece.tokens]
        chunk = {**self._head, "choices": [choice], **self._told(told)}
        if wanted.usage_always:
            chunk["usage"] = self.answer.usage()
        if wanted.timings and piece.tokens:
            chunk["timings"] = self.answer.timings()
        return chunk

    def _logprobs(self, piece: Piece, offset: int) -> Json | None:
        if not self._wanted.logprobs:
            return None
        return chat_logprobs(piece.tokens) if self._chat else text_logprobs(piece.tokens, offset)

    def _figures(self) -> Json:
        answer = self.answer
        return {"usage": answer.usage(), "timings": answer.timings(), "metrics": answer.metrics(self._most_drafted)}

    def _told(self, events: Sequence[Json]) -> Json:
        return {"dflash": list(events)} if self._wanted.events else {}
