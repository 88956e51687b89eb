"""Redacts the keys that were sent to a server in everything that comes back: if it echoes one, that shall not reach a
screen, a file or a log."""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus

from dflash_tui.core.settings.servers import ServerAddress
from dflash_tui.core.text.overlap import overlap
from engine.events import Step, TurnFinished, TurnStarted

REDACTED = "•••"
SHORTEST = 4
"""The fewest characters of a key that is redacted in a server's own sentences, such as errors."""
SHORTEST_IN_TEXT = 6
"""The fewest characters of a key that is redacted in an answer. A shorter one, or one of letters alone, may be a
word, and redacting words would spoil the text."""
LONGEST_WORD = 16
NO_KEYS = frozenset({"lm-studio", "not-needed", "not_needed", "no-key", "no-key-required", "sk-no-key-required"})
"""Placeholders that people write where a key must stand and none is needed."""
_TELLING = re.compile(r"auth|key|token|secret|cookie|pass", re.IGNORECASE)
T = TypeVar("T")


class Keys:
    """The secrets of one server."""

    def __init__(self, address: ServerAddress) -> None:
        keys = {address.key.strip()}
        for name, value in address.headers.items():
            if _TELLING.search(name) or (len(value) >= LONGEST_WORD and " " not in value):
                keys |= {value, value.split(" ")[-1]}
        known = [key for key in keys - NO_KEYS if len(key) >= SHORTEST]
        secret = {form for key in known if not _is_word(key) for form in _forms(key)}
        self.in_text = tuple(sorted(secret, key=len, reverse=True))
        self._all = sorted({*secret, *known}, key=len, reverse=True)

    def redacted(self, value: T) -> T:
        """A text, an event, or anything made of texts, without the keys. From an answer only those are taken that can
        be no word."""
        keys = self.in_text if isinstance(value, Step | TurnStarted | TurnFinished) else self._all
        changed: T = self._without(value, keys) if keys else value
        return changed

    def _without(self, value: Any, keys: Iterable[str]) -> Any:
        if isinstance(value, str):
            for key in keys:
                if key in value:
                    value = value.replace(key, REDACTED)
        elif isinstance(value, tuple | list):
            changed = [self._without(each, keys) for each in value]
            if any(new is not old for new, old in zip(changed, value, strict=True)):
                return type(value)(changed)
        elif isinstance(value, dict):
            return {self._without(name, keys): self._without(each, keys) for name, each in value.items()}
        elif is_dataclass(value) and not isinstance(value, type):
            given = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
            changes = {name: new for name, old in given.items() if (new := self._without(old, keys)) is not old}
            return replace(value, **changes) if changes else value
        return value


class StreamRedactor:
    """Redacts keys in a text that comes in pieces, even where a key spans two of them. What may become a key is held
    back once four characters of it have come: fewer are the end of nearly every text."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self._keys = keys
        self._shown = ""
        """The last characters that were given out."""
        self._held = ""

    def feed(self, piece: str) -> str:
        if not self._keys:
            return piece
        shown = len(self._shown)
        text = self._shown + self._held + piece
        for key in self._keys:
            while (start := text.find(key)) >= 0:
                text = text[: max(start, shown)] + REDACTED + text[start + len(key) :]
        held = max((overlap(text, key, SHORTEST) for key in self._keys), default=0)
        cut = max(len(text) - held, shown)
        self._shown, self._held = text[:cut][-SHORTEST + 1 :], text[cut:]
        return text[shown:cut]

    def rest(self) -> str:
        held, self._held = self._held, ""
        return held


def _forms(key: str) -> Iterator[str]:
    """A key as it is, and as a server may write it that echoes it: in JSON, in an address, in a page, in base64 with
    whatever stands before it, in hexadecimal digits, backwards."""
    raw = key.encode("utf-8", "replace")
    yield from (key, key.upper(), key.lower(), key[::-1], json.dumps(key)[1:-1], quote(key, ""), quote_plus(key))
    yield from (html.escape(key), raw.hex(), raw.hex().upper(), "".join(f"\\u{ord(each):04x}" for each in key))
    for before in range(3):  # base64 has three ways to write bytes, by what stands before them
        for written in (b64encode(bytes(before) + raw), urlsafe_b64encode(bytes(before) + raw)):
            yield written.decode().rstrip("=")[(0, 2, 3)[before] : -1]


def _is_word(key: str) -> bool:
    return len(key) < SHORTEST_IN_TEXT or (key.isalpha() and len(key) < LONGEST_WORD)
