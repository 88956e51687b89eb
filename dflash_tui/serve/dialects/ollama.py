"""Ollama's ``/api/chat`` and ``/api/generate``, and what its clients ask of the models that it has."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import ClassVar

from engine.events import EngineReady

from ..answers import Piece
from ..failures import ApiFailure
from ..requests import CompletionRequest, Offer, parse, refusal
from .dialect import Dialect, Json, encoded

_OWN = ("options", "think", "format", "num_predict", "raw", "system", "prompt")


class _Ollama(Dialect):
    media_type = "application/x-ndjson"

    asks: ClassVar[str]
    """The field without which a body asks for the model to be loaded."""

    @classmethod
    def at_once(cls, data: Json, model: str) -> Json | None:
        if data.get(cls.asks):
            return None
        return {
            "model": model,
            "created_at": _now(),
            **cls.content_fields(Piece()),
            "done": True,
            "done_reason": "load",
        }

    @classmethod
    def frame(cls, data: Json) -> bytes:
        return encoded(data) + b"\n"

    @classmethod
    def error(cls, failure: ApiFailure) -> Json:
        return {"error": str(failure)}

    @classmethod
    def content_fields(cls, piece: Piece) -> Json:
        """The fields in which a piece stands."""
        raise NotImplementedError

    def sign_of_life(self) -> bytes:
        return self.frame(self._object(Piece()))

    def opened(self, dflash_events: Sequence[Json]) -> list[Json]:
        return [self._object(Piece()) | self.dflash_fields(dflash_events)] if dflash_events else []

    def wrote(self, piece: Piece, dflash_events: Sequence[Json]) -> list[Json]:
        return [self._object(piece) | self.dflash_fields(dflash_events)]

    def ended(self, reason: str, dflash_events: Sequence[Json]) -> list[Json]:
        return [self.complete(Piece(), reason) | self.dflash_fields(dflash_events)]

    def complete(self, piece: Piece, reason: str) -> Json:
        """The last object, which alone is the answer where it comes whole. Times are in nanoseconds."""
        answer = self.answer
        usage, timings, queue = answer.usage(), answer.timings(), answer.queue_ms
        total = queue + timings["prompt_ms"] + timings["predicted_ms"]
        return self._object(piece) | {
            "done": True,
            "done_reason": "length" if reason == "length" else "stop",
            "total_duration": int(total * 1e6),
            "load_duration": 0,
            "prompt_eval_count": usage["prompt_tokens"],
            "prompt_eval_duration": int(timings["prompt_ms"] * 1e6),
            "eval_count": usage["completion_tokens"],
            "eval_duration": int(timings["predicted_ms"] * 1e6),
        }

    def _object(self, piece: Piece) -> Json:
        return {"model": self.about.model, "created_at": _now(), **self.content_fields(piece), "done": False}


class OllamaChat(_Ollama):
    path, asks = "/api/chat", "messages"

    @classmethod
    def read(cls, data: Json, offer: Offer) -> CompletionRequest:
        return parse("chat", _plain(data), offer)

    @classmethod
    def content_fields(cls, piece: Piece) -> Json:
        message: Json = {"role": "assistant", "content": piece.text}
        if piece.thought:
            message["thinking"] = piece.thought
        if piece.calls:
            message["tool_calls"] = [
                {"id": call.id, "function": {"name": call.name, "arguments": call.arguments}} for call in piece.calls
            ]
        return {"message": message}


class OllamaGenerate(_Ollama):
    path, asks = "/api/generate", "prompt"

    @classmethod
    def read(cls, data: Json, offer: Offer) -> CompletionRequest:
        plain = _plain(data)
        if data.get("raw"):
            return parse("text", plain | {"prompt": data.get("prompt")}, offer)
        system = [{"role": "system", "content": data["system"]}] if data.get("system") else []
        return parse("chat", plain | {"messages": [*system, {"role": "user", "content": data.get("prompt")}]}, offer)

    @classmethod
    def content_fields(cls, piece: Piece) -> Json:
        return {"response": piece.text} | ({"thinking": piece.thought} if piece.thought else {})


def _plain(data: Json) -> Json:
    """The request as ``/v1/chat/completions`` has it: options stand among the parameters, and it streams unless it says
    otherwise."""
    options = data.get("options") if isinstance(data.get("options"), dict) else {}
    options_given = {**(options or {}), **data}
    if options_given.get("format"):
        raise refusal("format", "this server gives free text alone")
    chat = {name: value for name, value in options_given.items() if name not in _OWN}
    longest = options_given.get("num_predict")
    chat |= {"stream": options_given.get("stream", True), "max_tokens": -1 if longest == -2 else longest}
    if (think := options_given.get("think")) is not None:
        chat["chat_template_kwargs"] = {"enable_thinking": think not in (False, "none")}
    return chat


def _now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def listed(ready: EngineReady, since: int, size: int, running: bool) -> Json:
    """What ``/api/tags`` says, and ``/api/ps``: the one model. ``size``: bytes of its weights, in files. How many it
    takes on a GPU isn't told where they are packed while they load."""
    when = datetime.fromtimestamp(since, UTC).isoformat().replace("+00:00", "Z")
    model = {
        "name": ready.target,
        "model": ready.target,
        "modified_at": when,
        "size": size,
        "digest": sha256(f"{ready.target} {ready.target_hash}".encode()).hexdigest(),
        "details": _details(ready),
    }
    if running:
        model |= {"expires_at": "9999-12-31T00:00:00Z", "context_length": ready.max_context}
        model |= {"size_vram": 0} if ready.device == "cpu" else {}
    return {"models": [model]}


def shown(ready: EngineReady) -> Json:
    """What ``/api/show`` says."""
    return {
        "modelfile": f"FROM {ready.target}",
        "parameters": "",
        "template": "",
        "details": _details(ready),
        "model_info": {"general.architecture": "dflash", "dflash.context_length": ready.max_context},
        "capabilities": ["completion", *(["tools"] if ready.calls else [])],
    }


def _details(ready: EngineReady) -> Json:
    return {
        "parent_model": "", "format": "safetensors", "family": "", "families": [], "parameter_size": "",
        "quantization_level": ready.dtype,
    }  # fmt: skip
