"""Keeps what people write from becoming control tokens: only the chat template's own marks begin and end messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from ..commands import Message, Tool, ToolCall

_NONCHARACTERS = [chr(code) for code in range(0xFDD0, 0xFDF0)]
"""What Unicode keeps for use inside programs. One that no text holds stands inside each mark while the template, which
may look for marks in its messages, is rendered; the tokenizer never sees it."""


class ControlMarks:
    """The texts that a tokenizer would take for control tokens."""

    def __init__(self, marks: Iterable[str], of_thoughts: tuple[str, str] | None = None) -> None:
        """``of_thoughts``: the marks around a thought. With one may the model's own messages begin, as templates look
        for them there, and leave earlier thoughts out; its opening mark may lie in the prompt before."""
        of_both = {*marks, *(of_thoughts or ())}
        self._in_thoughts, self._elsewhere = _pattern(of_both.difference(of_thoughts or ())), _pattern(of_both)
        opens, closes = map(re.escape, of_thoughts or ("", ""))
        self._thought = re.compile(rf"\s*+(?:{opens})?(?:(?!{opens}).)*?{closes}" if of_thoughts else "", re.DOTALL)

    def broken(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> tuple[list[Message], list[Tool], str]:
        """The messages and tools with each mark in them broken behind its first character, and what breaks them, which
        is in no text of theirs otherwise; an empty string where nothing was broken."""
        text = "".join(_texts([*map(asdict, messages), *map(asdict, tools)]))
        if not self._elsewhere.search(text):
            return list(messages), list(tools), ""
        breaker = next((each for each in _NONCHARACTERS if each not in text), _NONCHARACTERS[-1])

        def break_in(value: Any, pattern: re.Pattern[str] = self._elsewhere) -> Any:
            match value:
                case str():
                    return pattern.sub(lambda mark: mark[0][0] + breaker + mark[0][1:], value)
                case Mapping():
                    return {break_in(key): break_in(each) for key, each in value.items()}
                case list() | tuple():
                    return [break_in(each) for each in value]
            return value

        broken_messages = [
            replace(
                message,
                content=break_in(message.content[: (end := self._thought_end(message))], self._in_thoughts)
                + break_in(message.content[end:]),
                calls=tuple(ToolCall(**break_in(asdict(call))) for call in message.calls),
                name=break_in(message.name),
                call_id=break_in(message.call_id),
            )
            for message in messages
        ]
        return broken_messages, [Tool(**break_in(asdict(tool))) for tool in tools], breaker

    def _thought_end(self, message: Message) -> int:
        """Where the thought ends with which a message of the model's begins; 0 without one."""
        thought = self._thought.match(message.content) if message.role == "assistant" else None
        return 0 if thought is None else thought.end()


def _texts(value: Any) -> list[str]:
    """All texts in a JSON value, names of fields among them."""
    match value:
        case str():
            return [value]
        case Mapping():
            return [*_texts(list(value)), *_texts(list(value.values()))]
        case list() | tuple():
            return [text for each in value for text in _texts(each)]
    return []


def _pattern(marks: set[str]) -> re.Pattern[str]:
    """What finds the longest of marks at a place; nothing where there are none."""
    longest_first = sorted(filter(None, marks), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


def encode_broken(rendered: str, breaker: str, encode: Callable[[str], list[int]]) -> list[int]:
    """The ids of a rendered conversation. What stands on both sides of a breaker is encoded apart, so that no token
    reaches across."""
    if not breaker:
        return encode(rendered)
    return [token for segment in rendered.split(breaker) if segment for token in encode(segment)]
