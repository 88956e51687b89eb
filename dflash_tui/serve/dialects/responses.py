"""OpenAI's ``/v1/responses``, of which nothing is kept: a conversation comes whole with each request."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from ..answers import Piece
from ..conversation import wrong
from ..failures import ApiFailure
from ..requests import CompletionRequest, Offer, parse
from .dialect import About, Dialect, Json, arguments_of, named_event

_NAMES = {"max_output_tokens": "max_tokens"}
"""Parameters that are called otherwise here than in ``/v1/chat/completions``."""
_OWN = ("input", "instructions", "text", "tools")


class Responses(Dialect):
    path = "/v1/responses"

    def __init__(self, wanted: CompletionRequest, about: About) -> None:
        super().__init__(wanted, about)
        self._id, self._created = f"resp_{uuid4().hex}", int(time.time())
        self._output: list[Json] = []
        """Items that are whole."""
        self._item: Json = {}
        """The one that grows, a thought or a message; empty for none."""
        self._num_events = 0

    @classmethod
    def read(cls, data: Json, offer: Offer) -> CompletionRequest:
        chat = {_NAMES.get(name, name): value for name, value in data.items() if name not in _OWN}
        instructions = data.get("instructions")
        chat["messages"] = [{"role": "system", "content": instructions}] if instructions else []
        chat["messages"] += _messages(data.get("input"))
        if isinstance(about := data.get("text"), dict) and "format" in about:
            chat["response_format"] = about["format"]
        if isinstance(tools := data.get("tools"), list):
            chat["tools"] = [_tool(tool) for tool in tools]
        return parse("chat", chat, offer)

    @classmethod
    def frame(cls, data: Json) -> bytes:
        return named_event(data)

    def failed(self, failure: ApiFailure) -> Json:
        error = super().failed(failure)
        if not self.wanted.stream:
            return error
        return self._event("error", code=failure.code, message=str(failure), param=failure.param, **error)

    def opened(self, dflash_events: Sequence[Json]) -> list[Json]:
        begun = self._response("in_progress")
        events = [self._event(f"response.{name}", response=begun) for name in ("created", "in_progress")]
        return self._with(events, dflash_events)

    def wrote(self, piece: Piece, dflash_events: Sequence[Json]) -> list[Json]:
        events = self._grow("reasoning", "reasoning_text", piece.thought) if piece.thought else []
        if piece.text:
            events += self._grow("message", "output_text", piece.text)
        for call in piece.calls:
            events += self._close()
            arguments = arguments_of(call)
            item = {"type": "function_call", "id": f"fc_{uuid4().hex}", "call_id": call.id, "name": call.name}
            where = {"item_id": item["id"], "output_index": len(self._output)}
            begun, whole = item | _progress("in_progress", ""), item | _progress("completed", arguments)
            events += [
                self._event("response.output_item.added", output_index=len(self._output), item=begun),
                self._event("response.function_call_arguments.delta", **where, delta=arguments),
                self._event("response.function_call_arguments.done", **where, name=call.name, arguments=arguments),
                self._event("response.output_item.done", output_index=len(self._output), item=whole),
            ]
            self._output.append(whole)
        return self._with(events, dflash_events)

    def ended(self, reason: str, dflash_events: Sequence[Json]) -> list[Json]:
        events = self._close()
        status = _status(reason)
        return self._with([*events, self._event(f"response.{status}", response=self._response(status))], dflash_events)

    def complete(self, piece: Piece, reason: str) -> Json:
        self.wrote(piece, ())
        self._close()
        return self._response(_status(reason))

    def _grow(self, kind: str, field: str, text: str) -> list[Json]:
        """Adds text to the item of this kind, which begins where another one grew."""
        events: list[Json] = []
        if self._item.get("type") != kind:
            events += self._close()
            self._item = {"type": kind, "id": f"{'msg' if kind == 'message' else 'rs'}_{uuid4().hex}"}
            self._item |= {"role": "assistant"} if kind == "message" else {"summary": list[Json]()}
            self._item |= {"status": "in_progress", "content": [_content_part(field, "")]}
            empty = self._item | {"content": []}
            events.append(self._event("response.output_item.added", output_index=len(self._output), item=empty))
            events.append(self._event("response.content_part.added", **self._where, part=_content_part(field, "")))
        self._item["content"][0]["text"] += text
        delta = {"delta": text, "logprobs": []} if kind == "message" else {"delta": text}
        return [*events, self._event(f"response.{field}.delta", **self._where, **delta)]

    def _close(self) -> list[Json]:
        """Ends the item that grows."""
        if not (item := self._item):
            return []
        item["status"], content = "completed", item["content"][0]
        fields = {"text": content["text"], "logprobs": []} if item["type"] == "message" else {"text": content["text"]}
        events = [
            self._event(f"response.{content['type']}.done", **self._where, **fields),
            self._event("response.content_part.done", **self._where, part=content),
            self._event("response.output_item.done", output_index=len(self._output), item=item),
        ]
        self._output.append(item)
        self._item = {}
        return events

    @property
    def _where(self) -> Json:
        return {"item_id": self._item["id"], "output_index": len(self._output), "content_index": 0}

    def _event(self, kind: str, **fields: Any) -> Json:
        self._num_events += 1
        return {"type": kind, "sequence_number": self._num_events - 1, **fields}

    def _with(self, events: list[Json], dflash_events: Sequence[Json]) -> list[Json]:
        """The events with those of the engine, which come along with the last, or alone."""
        if dflash_events and not events:
            events = [self._event("response.dflash")]
        return [*events[:-1], {**events[-1], **self.dflash_fields(dflash_events)}] if dflash_events else events

    def _response(self, status: str) -> Json:
        usage, settings = self.answer.usage(), self.wanted.settings
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "model": self.about.model,
            "output": list(self._output),
            "parallel_tool_calls": True,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "tool_choice": "auto",
            "tools": [{"type": "function", "name": tool.name, "description": tool.description,
                       "parameters": tool.parameters, "strict": False} for tool in self.wanted.tools],
            "usage": None if status == "in_progress" else {
                "input_tokens": usage["prompt_tokens"],
                "input_tokens_details": {**usage["prompt_tokens_details"], "cache_write_tokens": 0},
                "output_tokens": usage["completion_tokens"],
                "output_tokens_details": usage["completion_tokens_details"],
                "total_tokens": usage["total_tokens"],
            },
        }  # fmt: skip


def _status(reason: str) -> str:
    return "incomplete" if reason == "length" else "completed"


def _progress(status: str, arguments: str) -> Json:
    return {"status": status, "arguments": arguments}


def _content_part(kind: str, text: str) -> Json:
    return {"type": kind, "text": text} | ({"annotations": [], "logprobs": []} if kind == "output_text" else {})


def _tool(tool: Any) -> Any:
    if not isinstance(tool, dict):
        return tool
    function = {name: tool.get(name) for name in ("name", "description", "parameters")}
    return {"type": tool.get("type"), "function": function}


def _messages(items: Any) -> list[Json]:
    """The conversation: a text, or messages, calls and what these gave back. Thoughts are left out, as elsewhere."""
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    if not isinstance(items, list):
        raise wrong("input", "a text or a list of items")
    messages: list[Json] = []
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise wrong(f"input[{index}]", "an object")
        match item.get("type", "message"):
            case "message":
                messages.append({"role": item.get("role"), "content": item.get("content")})
            case "function_call":
                call = {"id": item.get("call_id"), "function": {name: item.get(name) for name in ("name", "arguments")}}
                if not messages or messages[-1]["role"] != "assistant":
                    messages.append({"role": "assistant", "content": ""})
                messages[-1].setdefault("tool_calls", []).append(call)
            case "function_call_output":
                messages.append({
                    "role": "tool", "content": item.get("output"), "tool_call_id": item.get("call_id")
                })  # fmt: skip
            case "reasoning":
                pass
            case kind:
                raise ApiFailure(400, f"input[{index}] is {kind}: this server reads messages and functions alone.",
                                 param=f"input[{index}]")  # fmt: skip
    return messages
