"""Where the scrubber stands in the transcript, and what it makes of the tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from rich.style import Style

from dflash_tui.core.text.marks import Mark

Role = Literal["after", "hidden", "step", "cursor"]
"""What the scrubber makes of a token: later, hidden as yet, of the round on show, or under the cursor."""


_BLANKS = re.compile(r"(\s+)")


@dataclass(frozen=True, slots=True)
class Spotlight:
    """Where the scrubber stands: at the round of a turn whose tokens are ``first`` to ``behind - 1``."""

    turn: int
    first: int
    behind: int
    cursor: int | None = None
    hide: bool = False
    """Whether to blank what comes later instead of dimming it."""
    label: str = ""
    """What the corner of the transcript says; empty for nothing."""


def role_of(mark: Mark, spot: Spotlight) -> Role | None:
    """What the scrubber makes of a token that is not behind it."""
    if mark.token is None or mark.turn != spot.turn or not spot.first <= mark.token < spot.behind:
        return None
    return "cursor" if mark.token == spot.cursor else "step"


def cut_pieces(pieces: Iterator[tuple[str, Mark]], start: int, stop: int) -> Iterator[tuple[str, Mark, bool]]:
    """A row's pieces, cut where a selection of its characters begins and ends; True are those inside."""
    position = 0
    for text, mark in pieces:
        low, high = min(max(start - position, 0), len(text)), min(max(stop - position, 0), len(text))
        for piece, chosen in ((text[:low], False), (text[low:high], True), (text[high:], False)):
            if piece:
                yield piece, mark, chosen
        position += len(text)


def styled_words(text: str, style: Style) -> Iterator[tuple[Style, str]]:
    """Blanks are not underlined: a token begins with one more often than not."""
    if not style.underline:
        yield style, text
        return
    blank = style + Style(underline=False)
    for word in _BLANKS.split(text):
        if word:
            yield (blank if word.isspace() else style), word
