"""Passes of models as blocks of colour, in rows: why DFlash pays off."""

from __future__ import annotations

from textual.content import Content
from textual.widget import Widget

from dflash_tui.core.rounds.passes import REASON, Ink, PassRows

INKS: dict[Ink, str] = {
    "name": "bold",
    "draft": "bold $background on $primary",
    "target": "bold $landed-bonus-text on $landed-bonus",
    "waiting": "$foreground 50% on $foreground 12%",
    "gap": "",
}
MOST_THICK = 5
"""Rows of a block at most."""


def passes_lines(passes: PassRows, width: int, height: int, share: float = 1.0) -> list[Content]:
    """The rows in at most ``height`` lines of ``width`` cells, as thick as there is room, when ``share`` of their time
    has passed."""
    each = height // len(passes.rows)
    thick = min(max(each - 1, 1), MOST_THICK)
    lines: list[Content] = []
    for pieces in passes.lines(width, share):
        bare = Content.assemble(*((" " * len(text), _ground(INKS[ink])) for text, ink in pieces))
        content = Content.assemble(*((text, INKS[ink]) for text, ink in pieces))
        upper = (thick - 1) // 2
        lines += [*[bare] * upper, content, *[bare] * (thick - 1 - upper), *[Content()] * (each > thick)]
    return lines


def _ground(style: str) -> str:
    return style if " on " in style else ""


class Reason(Widget):
    """The picture of DFlash's reason, in two lines, or in five where there is room."""

    DEFAULT_CSS = """
    Reason { height: 2; text-wrap: nowrap; text-overflow: clip; }
    """

    def render(self) -> Content:
        return Content("\n").join(passes_lines(REASON, self.size.width, self.size.height))
