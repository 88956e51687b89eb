"""What strangers send, read without trust: everything may be missing, of another type, or absurd."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

MOST = 1 << 24
"""No count in an answer is larger."""
LONGEST_SENTENCE = 300
MOST_WORDS = 1000
"""Characters of an error that are looked at, and 64 times as many of a web page."""
_DECODER = json.JSONDecoder()


def parsed(text: str | bytes) -> Any:
    """The JSON of a text; ``ValueError`` when it is none."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def values(text: str) -> tuple[list[Mapping[str, Any]], str]:
    """The objects at the beginning of a text, one behind the other or in an array, and what stands behind them."""
    found: list[Mapping[str, Any]] = []
    while (rest := text.lstrip(" \t\r\n,\x1e")) and rest[0] in "{[":
        try:
            value, end = _DECODER.raw_decode(rest)
        except (ValueError, RecursionError):
            return found, rest
        found += [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)]
        text = rest[end:]
    return found, rest


def mapping(value: Any) -> Mapping[str, Any]:
    """An object; empty when it is none."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> Sequence[Any]:
    """An array; empty when it is none."""
    return value if isinstance(value, list) else ()


def count(value: Any) -> int | None:
    """A number of things; None when it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST:
        return None
    return int(value)


def counts(value: Any) -> tuple[int, ...] | None:
    """An array of them; None where one isn't."""
    if not isinstance(value, list):
        return None
    numbers = tuple(count(each) for each in value)
    return None if None in numbers else numbers  # type: ignore[return-value]


def real(value: Any) -> float | None:
    """A finite number, not below 0; None when it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e12 and isfinite(value) else None


def words(value: Any) -> str:
    """A text that can be stored: half a surrogate pair is replaced. Empty when it is none."""
    if not isinstance(value, str):
        return ""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def sentence(text: str) -> str:
    """On one line, not endless, with a full stop, and harmless on a terminal."""
    line = " ".join("".join(mark if mark.isprintable() else " " for mark in words(text)).split())
    if len(line) > LONGEST_SENTENCE:
        line = line[:LONGEST_SENTENCE] + "…"
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."
