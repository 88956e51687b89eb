"""Reads the messages of a request, and the tools that it offers, as ``/v1/chat/completions`` has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from engine.commands import Message, Tool, ToolCall

from .failures import ApiFailure

_ROLES: Mapping[str, Literal["system", "user", "assistant", "tool"]] = {
    "system": "system", "developer": "system", "user": "user", "assistant": "assistant",
    "tool": "tool", "function": "tool",
}  # fmt: skip
_TEXTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
"""Types of parts that are text, and the field in which the text stands."""


def wrong(name: str, words: str) -> ApiFailure:
    return ApiFailure(400, f"{name} must be {words}.", param=name)


def read_messages(value: Any) -> tuple[Message, ...]:
    """The conversation. Raises :class:`ApiFailure` for what is none."""
    if not isinstance(value, list) or not value:
        raise wrong("messages", "a list with at least one message")
    messages: list[Message] = []
    open_calls: list[ToolCall] = []
    for index, each in enumerate(value):
        message = _message(each, f"messages[{index}]")
        if message.role == "tool":
            message = _answering(message, open_calls)
        elif message.calls:
            calls = [call if call.id else replace(call, id=f"call_{index}_{n}") for n, call in enumerate(message.calls)]
            message, open_calls = replace(message, calls=tuple(calls)), calls
        messages.append(message)
    return tuple(messages)


def _answering(result: Message, open_calls: list[ToolCall]) -> Message:
    """The result, with the name and the id of its call: that with its id, else of its name, else the oldest."""
    ways = (
        [call for call in open_calls if call.id == result.call_id],
        [] if result.call_id else [call for call in open_calls if call.name == result.name],
        [] if result.call_id or result.name else open_calls,
    )
    call = next((call_id[0] for call_id in ways if call_id), None)
    if call is None:
        return result
    open_calls.remove(call)
    return replace(result, name=call.name, call_id=call.id)


def _message(value: Any, where: str) -> Message:
    if not isinstance(value, dict):
        raise wrong(where, "an object with role and content")
    role = value.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        words = f"{where}.role must be system, developer, user, assistant or tool, not {role!r}."
        raise ApiFailure(400, words, param=where)
    content = value.get("content")
    text = _content(value.get("refusal") if content is None else content, f"{where}.content")
    if value.get("images"):
        raise ApiFailure(400, f"{where} has images: this server reads text alone.", param=where)
    if _ROLES[role] == "tool":
        name, called = value.get("name") or value.get("tool_name"), value.get("tool_call_id")
        return Message("tool", text, name=str(name or ""), call_id=str(called or ""))
    listed = value.get("tool_calls") or ()
    if not isinstance(listed, list | tuple) or (listed and role != "assistant"):
        raise wrong(f"{where}.tool_calls", "a list of calls, of an assistant")
    calls = tuple(_call(each, f"{where}.tool_calls[{index}]") for index, each in enumerate(listed))
    return Message(_ROLES[role], text, calls)


def _call(value: Any, where: str) -> ToolCall:
    """A call, whose arguments are an object, or its JSON."""
    called = value.get("function") if isinstance(value, dict) else None
    name, arguments = (called.get("name"), called.get("arguments")) if isinstance(called, dict) else (None, None)
    if isinstance(arguments, str | None):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            arguments = None
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise wrong(where, "a call of a function, with a name and with arguments as JSON")
    return ToolCall(name, arguments, str(value.get("id") or ""))


def _content(value: Any, where: str) -> str:
    """The text of a message's content; null is an empty one."""
    if value is None or isinstance(value, str):
        return value or ""
    if not isinstance(value, list):
        raise wrong(where, "a text, or a list of parts that are text")
    return "\n".join(_text_of_part(content_part, f"{where}[{index}]") for index, content_part in enumerate(value))


def _text_of_part(content_part: Any, where: str) -> str:
    """The text of a part, which stands in the field that is named like the part's type, or in ``text``; a part may also
    be a bare text."""
    if isinstance(content_part, str):
        return content_part
    kind = content_part.get("type", "text") if isinstance(content_part, dict) else None
    if not isinstance(kind, str) or kind not in _TEXTS:
        raise ApiFailure(400, f"{where} is {kind or 'no part'}: this server reads text alone.", param=where)
    text = content_part.get(_TEXTS[kind])
    if not isinstance(text, str):
        raise wrong(f"{where}.{_TEXTS[kind]}", "a text")
    return text


def read_tools(value: Any) -> tuple[Tool, ...]:
    """The functions that the model may call. Raises :class:`ApiFailure` for tools that are none."""
    if not isinstance(value or [], list):
        raise wrong("tools", "a list of functions")
    return tuple(_tool(each, f"tools[{index}]") for index, each in enumerate(value or []))


def _tool(value: Any, where: str) -> Tool:
    if not isinstance(value, dict) or value.get("type", "function") != "function":
        raise wrong(where, "a function: the request's own are the only tools here")
    function = value.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(name, str) or not name:
        raise wrong(f"{where}.function.name", "a text, and not empty")
    about, parameters = function.get("description") or "", function.get("parameters") or {}
    if not isinstance(about, str) or not isinstance(parameters, dict):
        raise wrong(f"{where}.function", "an object with name, description and parameters")
    return Tool(name, about, parameters)
