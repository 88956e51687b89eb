"""Anthropic's ``/v1/messages``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from ..answers import Piece
from ..conversation import wrong
from ..failures import ApiFailure
from ..requests import CompletionRequest, Offer, parse
from .dialect import About, Dialect, Json, arguments_of, named_event

_NAMES = {"stop_sequences": "stop"}
"""Parameters that are called otherwise here than in ``/v1/chat/completions``."""
_OWN = ("system", "messages", "tools", "tool_choice", "thinking", "metadata")
_REASONS = {"length": "max_tokens", "tool_calls": "tool_use", "stop": "end_turn"}
_OF_TOOLS = {"name": "name", "description": "description", "parameters": "input_schema"}
_TYPES = {"server_error": "api_error"}


class Messages(Dialect):
    path = "/v1/messages"

    def __init__(self, wanted: CompletionRequest, about: About) -> None:
        super().__init__(wanted, about)
        self._id = f"msg_{uuid4().hex}"
        self._blocks = 0
        """How many blocks were closed."""
        self._open = ""
        """The kind of the block that grows; "" for none."""

    @classmethod
    def read(cls, data: Json, offer: Offer) -> CompletionRequest:
        chat = {_NAMES.get(name, name): value for name, value in data.items() if name not in _OWN}
        if not isinstance(messages := data.get("messages"), list):
            raise wrong("messages", "a list with at least one message")
        system = [{"role": "system", "content": data["system"]}] if data.get("system") else []
        chat["messages"] = system + [made for index, each in enumerate(messages) for made in _messages(each, index)]
        if isinstance(tools := data.get("tools"), list):
            chat["tools"] = [_tool(tool) for tool in tools]
        chat["tool_choice"] = _kind(data, "tool_choice")
        chat["user"] = (data.get("metadata") or {}).get("user_id") if isinstance(data.get("metadata"), dict) else None
        if thinking := _kind(data, "thinking"):
            chat["chat_template_kwargs"] = {"enable_thinking": thinking != "disabled"}
        return parse("chat", chat, offer)

    @classmethod
    def error(cls, failure: ApiFailure) -> Json:
        error = failure.body()["error"]
        return {"type": "error", "error": error | {"type": _TYPES.get(error["type"], error["type"])}}

    @classmethod
    def frame(cls, data: Json) -> bytes:
        return named_event(data)

    def sign_of_life(self) -> bytes:
        return self.frame({"type": "ping"})

    def opened(self, dflash_events: Sequence[Json]) -> list[Json]:
        begun = self._message([], None) | {"usage": self._usage() | {"output_tokens": 0}}
        return [{"type": "message_start", "message": begun, **self.dflash_fields(dflash_events)}]

    def wrote(self, piece: Piece, dflash_events: Sequence[Json]) -> list[Json]:
        events = self._grow("thinking", piece.thought) if piece.thought else []
        if piece.text:
            events += self._grow("text", piece.text)
        for call in piece.calls:
            events += self._close()
            block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": arguments_of(call)}
            self._open = "tool_use"
            events += [self._begun(block), self._at("content_block_delta", delta=delta), *self._close()]
        if dflash_events and not events:
            events = [{"type": "ping"}]
        return [*events[:-1], {**events[-1], **self.dflash_fields(dflash_events)}]

    def ended(self, reason: str, dflash_events: Sequence[Json]) -> list[Json]:
        end = {name: value for name, value in self._message([], reason).items() if name.startswith("stop")}
        return [
            *self._close(),
            {"type": "message_delta", "delta": end, "usage": self._usage(), **self.dflash_fields(dflash_events)},
            {"type": "message_stop"},
        ]

    def complete(self, piece: Piece, reason: str) -> Json:
        blocks: list[Json] = [{"type": "thinking", "thinking": piece.thought, "signature": ""}] if piece.thought else []
        if piece.text or not piece.calls:
            blocks.append({"type": "text", "text": piece.text})
        blocks += [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in piece.calls
        ]
        return self._message(blocks, reason)

    def _grow(self, kind: str, text: str) -> list[Json]:
        """Adds text to the block of this kind, which begins where another one grew."""
        events: list[Json] = []
        if self._open != kind:
            events = self._close()
            self._open = kind
            events.append(self._begun({"type": kind, kind: ""} | ({"signature": ""} if kind == "thinking" else {})))
        return [*events, self._at("content_block_delta", delta={"type": f"{kind}_delta", kind: text})]

    def _begun(self, block: Json) -> Json:
        return self._at("content_block_start", content_block=block)

    def _at(self, kind: str, **fields: Any) -> Json:
        return {"type": kind, "index": self._blocks, **fields}

    def _close(self) -> list[Json]:
        if not self._open:
            return []
        stop = self._at("content_block_stop")
        self._open, self._blocks = "", self._blocks + 1
        return [stop]

    def _message(self, blocks: list[Json], reason: str | None) -> Json:
        stop_text = self.answer.stop_reason
        cut = isinstance(stop_text, str) and reason == "stop"
        return {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self.about.model,
            "content": blocks,
            "stop_reason": "stop_sequence" if cut else _REASONS.get(reason or ""),
            "stop_sequence": stop_text if cut else None,
            "usage": self._usage(),
        }

    def _usage(self) -> Json:
        usage = self.answer.usage()
        reused = usage["prompt_tokens_details"]["cached_tokens"]
        return {
            "input_tokens": usage["prompt_tokens"] - reused,
            "cache_read_input_tokens": reused,
            "cache_creation_input_tokens": 0,
            "output_tokens": usage["completion_tokens"],
        }


def _kind(data: Json, name: str) -> Any:
    """What a parameter says that is an object with a type."""
    value = data.get(name)
    return value.get("type") if isinstance(value, dict) else value


def _tool(tool: Any) -> Any:
    if not isinstance(tool, dict) or tool.get("type", "custom") != "custom":
        return tool
    function = {name: tool.get(own) for name, own in _OF_TOOLS.items()}
    return {"type": "function", "function": function}


def _messages(value: Any, index: int) -> list[Json]:
    """A message: what tools gave back comes first, each as a message of its own. Thoughts are left out."""
    if not isinstance(value, dict) or not isinstance(value.get("content"), list):
        return [value]
    results, parts, calls = [], [], []
    for block in value["content"]:
        match block:
            case {"type": "tool_use", "name": name}:
                calls.append({"id": block.get("id"), "function": {"name": name, "arguments": block.get("input") or {}}})
            case {"type": "tool_result"}:
                results.append({
                    "role": "tool", "tool_call_id": block.get("tool_use_id"), "content": block.get("content")
                })  # fmt: skip
            case {"type": "thinking" | "redacted_thinking"}:
                pass
            case _:
                parts.append(block)
    rest = [{"role": value.get("role"), "content": parts} | ({"tool_calls": calls} if calls else {})]
    return results + (rest if parts or calls or not results else [])
