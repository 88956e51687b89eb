"""One round in large cells, to be read from the back of a hall: each position a block of colour with its guess, and
under it what the target said. Colours are grounds, not letters: a projector washes out thin strokes."""

from __future__ import annotations

from math import ceil

from rich.cells import cell_len, set_cell_size
from textual.content import Content
from textual.widget import Widget

from dflash_tui.core.rounds.cells import END_MARK, draft_text, show_blanks
from dflash_tui.core.rounds.inspection import Column, Outcome
from engine.events import EmittedToken

from .step_table import MASK, VERDICTS, Cell, Scene

LEAST_WIDTH, LONGEST_TEXT, MOST_WIDTH = 7, 13, 18
"""Cells of a position at least, for its text at most, and at most."""
PARTS = {
    8: "_go__t", 7: "_go_t", 6: "_got", 5: "got", 4: "got", 3: "gt", 2: "gt",
}  # fmt: skip
"""By the rows of a position: a blank, the guess and its odds on its ground, then the target's token, and air."""
QUIET = "$foreground on $foreground 15%"
GROUNDS: dict[Outcome, str] = {
    "accepted": "bold $verdict-accepted-text on $verdict-accepted",
    "rejected": "bold strike $verdict-rejected-text on $verdict-rejected",
    "discarded": "strike $verdict-rejected",
    "unverified": "italic $verdict-pending",
    "ended": "italic $verdict-pending",
    "bonus": "italic $verdict-pending",
    "plain": "italic $verdict-pending",
    "unknown": QUIET,
}
"""Of a guess, once it is judged."""
OWN_GROUNDS: dict[str, str] = {
    "corrected": "bold underline $verdict-corrected-text on $verdict-corrected",
    "bonus": "bold $verdict-bonus-text on $verdict-bonus",
    "plain": "bold italic $verdict-plain-text on $verdict-plain",
}
"""Of the target's own token, once it joins the text."""
OWN_MARKS = {"corrected": "⇒ ", "bonus": "+ "}


class LargeRound(Widget):
    """Draws a scene as a grid, as high as there is room."""

    DEFAULT_CSS = """
    LargeRound { height: 1fr; text-wrap: nowrap; text-overflow: clip; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.scene: Scene | None = None

    def show(self, scene: Scene | None) -> None:
        if scene != self.scene:
            self.scene = scene
            self.refresh()

    def render(self) -> Content:
        if self.scene is None:
            return Content()
        return Content("\n").join(round_lines(self.scene, self.size.width, self.size.height))


def round_lines(scene: Scene, width: int, height: int) -> list[Content]:
    """The positions of a round in rows of cells that are all of one size."""
    columns = scene.inspection.columns
    cell, per_row = _grid(scene, width)
    rows = [columns[start : start + per_row] for start in range(0, len(columns), per_row)]
    high = next((high for high in PARTS if high * len(rows) <= height), min(PARTS))
    lines = [line for row in rows for line in _row(scene, row, cell, high)]
    return lines[: max(height, 1)]


def _grid(scene: Scene, width: int) -> tuple[int, int]:
    """The width of a cell, and how many stand in a row: in as few rows as the texts allow, which are as even as can
    be."""
    texts = (text for column in scene.inspection.columns for text in (_guess(scene, column), _own(scene, column)[0]))
    least = max(min(max(map(cell_len, texts), default=0) + 2, LONGEST_TEXT), LEAST_WIDTH)
    count = max(len(scene.inspection.columns), 1)
    rows = ceil(count / max((width + 1) // (least + 1), 1))
    per_row = ceil(count / rows)
    return min((width + 1) // per_row - 1, MOST_WIDTH), per_row


def _row(scene: Scene, columns: tuple[Column, ...], width: int, high: int) -> list[Content]:
    guesses = [(_guess(scene, column), _ground(scene, column)) for column in columns]
    odds = [(_odds(scene, column), _unlined(ground)) for column, (_, ground) in zip(columns, guesses, strict=True)]
    blank = [("", ground) for _, ground in guesses]
    parts = {"g": guesses, "o": odds, "_": blank, "t": [_own(scene, column) for column in columns]}
    lines = [_line(parts[part], width) for part in PARTS[high]]
    return [*lines, *[Content()] * (high - len(lines))]


def _line(cells: list[Cell], width: int) -> Content:
    pieces: list[Cell] = []
    for text, style in cells:
        shown = text if cell_len(text) <= width - 2 else set_cell_size(text, width - 3) + "…"
        before = (width - cell_len(shown)) // 2
        ground = _unlined(style)
        pieces += [
            (" " * before, ground),
            (shown, style),
            (" " * (width - before - cell_len(shown)), ground),
            (" ", ""),
        ]
    return Content.assemble(*pieces)


def _unlined(style: str) -> str:
    """The same without lines, which are for a token's text."""
    return " ".join(word for word in style.split() if word not in ("underline", "strike"))


def _guess(scene: Scene, column: Column) -> str:
    if column.draft is None:
        return ""
    return show_blanks(draft_text(column.draft)) if scene.reached("draft") else MASK


def _odds(scene: Scene, column: Column) -> str:
    known = column.draft is not None and column.draft.probability is not None and scene.reached("draft")
    return f"{column.draft.probability:.0%}" if known and column.draft else ""


def _ground(scene: Scene, column: Column) -> str:
    if column.draft is None:
        return ""
    if not scene.reached("judge"):
        return QUIET
    return GROUNDS["rejected" if column.kept_further else column.outcome]


def _own(scene: Scene, column: Column) -> Cell:
    """What the target said at a position: a check under a kept guess, its own token where it wrote one."""
    choice: EmittedToken | None = column.choice
    if not scene.reached("verify"):
        return "", ""
    if choice is None:
        return (VERDICTS[column.outcome], "$verdict-pending") if scene.reached("judge") else ("", "")
    text = END_MARK if choice.channel == "control" else show_blanks(choice.text)
    if not scene.reached("judge"):
        return text, "bold $foreground"
    if choice.verdict == "accepted":
        return (text, "bold $verdict-accepted") if column.kept_further else (VERDICTS["accepted"], "bold $foreground")
    if not scene.reached("emit"):
        return text, "bold $foreground"
    return OWN_MARKS.get(choice.verdict, "") + text, OWN_GROUNDS.get(choice.verdict, "bold $foreground")
