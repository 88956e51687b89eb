"""A lesson's picture of a memory that forgets, in colours."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from textual.content import Content

from dflash_tui.core.lesson.memory import Ink, Line

INKS: dict[Ink, str] = {
    "name": "bold",
    "memory": "$primary",
    "row": "$foreground",
    "kept": "$verdict-accepted",
    "fallen": "strike $verdict-rejected",
    "words": "$foreground",
}


def inked(lines: Sequence[Line], width: int) -> list[Content]:
    """Lines for the screen; words are wrapped."""
    drawn: list[Content] = []
    for line in lines:
        if line and line[0][1] == "words":
            drawn += [Content(words) for words in wrap(line[0][0], width)]
        else:
            drawn.append(Content.assemble(*((text, INKS[ink]) for text, ink in line)) if line else Content())
    return drawn
