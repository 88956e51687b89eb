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

    def __init__(self, marks: Iterable[str]) -> None:
        longest_first = sorted(filter(None, marks), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def broken(self, messages: Sequence[Message]) -> tuple[list[Message], str]:
        """The messages with each mark in them broken behind its first character, and what breaks them, which is in no
        message otherwise; an empty string where nothing was broken."""
        pattern = self._pattern
        if pattern is None or not any(pattern.search(message.content) for message in messages):
            return list(messages), ""
        text = "".join(message.content for message in messages)
        breaker = next((each for each in _NONCHARACTERS if each not in text), _NONCHARACTERS[-1])
        return [
            replace(message, content=pattern.sub(lambda mark: mark[0][0] + breaker + mark[0][1:], message.content))
            for message in messages
        ], breaker


def encode_broken(rendered: str, breaker: str, encode: Callable[[str], list[int]]) -> list[int]:
    """The ids of a rendered conversation. What stands on both sides of a breaker is encoded apart, so that no token
    reaches across."""
    if not breaker:
        return encode(rendered)
    return [token for part in rendered.split(breaker) if part for token in encode(part)]
