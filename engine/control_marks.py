"""Keeps what people write from becoming control tokens: only the chat template's own marks begin and end messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from .commands import Message

_NONCHARACTERS = [chr(code) for code in range(0xFDD0, 0xFDF0)]
"""What Unicode keeps for use inside programs. One that no text holds stands inside each mark while the template, which
may look for marks in its messages, is rendered; the tokenizer never sees it."""


class ControlMarks:
    """The texts that a tokenizer would take for control tokens."""

    def __init__(self, marks: Iterable[str], of_thoughts: Iterable[str] = ()) -> None:
        """``of_thoughts``: marks around a thought, which stay in the model's own messages: templates look for them
        there, and leave earlier thoughts out."""
        of_turns, of_both = set(marks) - set(of_thoughts), set(marks) | set(of_thoughts)
        self._in_answers, self._elsewhere = _pattern(of_turns), _pattern(of_both)

    def broken(self, messages: Sequence[Message]) -> tuple[list[Message], str]:
        """The messages with each mark in them broken behind its first character, and what breaks them, which is in no
        message otherwise; an empty string where nothing was broken."""
        patterns = [self._in_answers if each.role == "assistant" else self._elsewhere for each in messages]
        if not any(pattern.search(message.content) for pattern, message in zip(patterns, messages, strict=True)):
            return list(messages), ""
        text = "".join(message.content for message in messages)
        breaker = next((each for each in _NONCHARACTERS if each not in text), _NONCHARACTERS[-1])
        return [
            replace(message, content=pattern.sub(lambda mark: mark[0][0] + breaker + mark[0][1:], message.content))
            for pattern, message in zip(patterns, messages, strict=True)
        ], breaker


def _pattern(marks: set[str]) -> re.Pattern[str]:
    """What finds the longest of marks at a place; nothing where there are none."""
    longest_first = sorted(filter(None, marks), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


def encode_broken(rendered: str, breaker: str, encode: Callable[[str], list[int]]) -> list[int]:
    """The ids of a rendered conversation. What stands on both sides of a breaker is encoded apart, so that no token
    reaches across."""
    if not breaker:
        return encode(rendered)
    return [token for part in rendered.split(breaker) if part for token in encode(part)]
