"""A lesson's pictures in letters, in colours."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from dflash_tui.core.lesson.drawn import Ink, Line

INKS: dict[Ink, str] = {
    "name": "bold",
    "memory": "$primary",
    "row": "$foreground",
    "kept": "$verdict-accepted",
    "fallen": "strike $verdict-rejected",
    "faint": "$verdict-pending",
    "new": "bold $verdict-corrected",
    "words": "$foreground",
}


def inked(lines: Sequence[Line]) -> Content:
    """A drawn picture's lines as one text for the screen, in the theme's colours."""
    return Content("\n").join(Content.assemble(*((text, INKS[ink]) for text, ink in line)) for line in lines)
