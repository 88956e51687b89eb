"""Text from models, files and users with nothing in it that a terminal would act on."""

from __future__ import annotations

import re

TAB = "    "
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls: ESC above all
    "\u200e\u200f\u2028-\u202e\u2066-\u2069"  # separators and bidirectional overrides reorder what follows
    "\ud800-\udfff]"  # lone surrogates can't be written to a terminal
)
_CHANGED = re.compile(f"\t|{_UNSAFE.pattern}")


def sanitise(text: str) -> str:
    """``text`` with nothing in it that a terminal would act on. Newlines stay, a tab becomes four spaces."""
    text = text.replace("\r\n", "\n").replace("\t", TAB)
    return _UNSAFE.sub(_replacement, text) if _UNSAFE.search(text) else text


def is_harmless(text: str) -> bool:
    """Whether :func:`sanitise` would change nothing."""
    return _CHANGED.search(text) is None


def without_surrogates(text: str) -> str:
    """``text`` with a question mark for each half of a surrogate pair: JSON can hold these, UTF-8 can't."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def signed(text: str) -> str:
    """``text`` with a sign in the place of each character that a terminal would act on; tabs and newlines stay."""
    return _UNSAFE.sub(_sign, text)


def in_line(text: str) -> str:
    """``text`` on one line, with signs as :func:`signed` has them."""
    return " ".join(signed(text).split())


def _replacement(match: re.Match[str]) -> str:
    return "" if match[0] == "\r" else _sign(match)


def _sign(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(0x2400 + code) if code < 0x20 else "�"
