"""What a lesson's pictures in letters are made of: lines of inked pieces, for a screen, a page and a pipe alike."""

from __future__ import annotations

from textwrap import wrap
from typing import Literal

Ink = Literal["name", "memory", "row", "kept", "fallen", "faint", "new", "words"]
Line = tuple[tuple[str, Ink], ...]
"""Texts side by side, and what each of them is."""
NAME_WIDTH = 8
"""Cells of the name that stands before a line."""


def said(words: str, width: int) -> list[Line]:
    """A sentence below a picture, in lines of ``width`` cells."""
    return [((line, "words"),) for line in wrap(words, width)]


def as_text(lines: list[Line]) -> str:
    """The lines of a picture as plain text, where there are no colours."""
    return "\n".join("".join(text for text, _ in line).rstrip() for line in lines)
