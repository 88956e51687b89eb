"""Reads values that strangers send without trusting them: each may be missing, of another type, or absurd."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from math import isfinite
from typing import Any, TypeVar

from dflash_tui.core.text.harmless import in_line, sanitise, without_surrogates
from engine.events import TurnFinished, TurnStarted

T = TypeVar("T")
MOST = 1 << 24
"""The largest number that is taken for a count."""
LONGEST_SENTENCE = 300
MOST_WORDS = 1000
"""How many characters of an error are looked at; of a web page 64 times as many."""
LONGEST_NUMBER = 4000
"""Digits of the longest number that is read as one; a longer one stays a text."""
_DECODERS = (json.JSONDecoder(), json.JSONDecoder(parse_int=lambda t: int(t) if len(t) <= LONGEST_NUMBER else t))


def parsed(text: str | bytes) -> Any:
    """The JSON of a text; ``ValueError`` when it is none."""
    decoded = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    value, end = _decoded(decoded.strip())
    if end < len(decoded.strip()):
        raise ValueError("more than JSON")
    return value


def _decoded(text: str) -> tuple[Any, int]:
    """The JSON at the beginning of a text, and where it ends. ``ValueError`` where there is none."""
    try:
        return _DECODERS[0].raw_decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError):
            raise
        return _DECODERS[1].raw_decode(text)  # a number with more digits than Python reads


def values(text: str) -> tuple[list[Mapping[str, Any]], str]:
    """The JSON objects at the beginning of a text, one behind the other or in an array, and the text behind them."""
    mappings: list[Mapping[str, Any]] = []
    while (rest := text.lstrip(" \t\r\n,\x1e")) and rest[0] in "{[":
        try:
            value, end = _decoded(rest)
        except ValueError:
            return mappings, rest
        mappings += [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)]
        text = rest[end:]
    return mappings, rest


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is an object; otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> Sequence[Any]:
    """The value if it is an array; otherwise an empty one."""
    return value if isinstance(value, list) else ()


def count(value: Any) -> int | None:
    """The value if it is a whole number from 0 to ``MOST``; otherwise None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST:
        return None
    return int(value)


def counts(value: Any) -> tuple[int, ...] | None:
    """An array of counts as a tuple; None where an entry is none."""
    if not isinstance(value, list):
        return None
    numbers = tuple(count(each) for each in value)
    return None if None in numbers else numbers  # type: ignore[return-value]


def real(value: Any) -> float | None:
    """The value if it is a finite number not below 0; otherwise None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e12 and isfinite(value) else None


def words(value: Any) -> str:
    """The value if it is a text, with any half of a surrogate pair replaced; otherwise empty."""
    return without_surrogates(value) if isinstance(value, str) else ""


def sentence(text: str) -> str:
    """The text as a sentence: on one line, of limited length, with a full stop, and without a terminal's control
    codes."""
    line = in_line(words(text))
    if len(line) > LONGEST_SENTENCE:
        line = line[:LONGEST_SENTENCE] + "…"
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."


def harmless(event: T) -> T:
    """An event in whose words, other than what was asked and answered, no terminal finds anything to act on: a name or
    a sentence is one line."""
    if isinstance(event, TurnStarted | TurnFinished):
        return event
    given = {each.name: value for each in fields(event) if isinstance(value := getattr(event, each.name), str)}  # type: ignore[arg-type]
    clean = {name: sanitise(value) if name == "banner" else in_line(value) for name, value in given.items()}
    changed: T = replace(event, **clean) if clean != given else event  # type: ignore[type-var]
    return changed
