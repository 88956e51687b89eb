"""One round in large cells, to be read from the back of a hall: each position a block of colour with its guess, and
under it what the target said. Colours are grounds, not letters: a projector washes out thin strokes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from textwrap import wrap

from rich.cells import cell_len, set_cell_size
from textual.content import Content

from dflash_tui.core.figures.labels import PHASE_NAMES
from dflash_tui.core.rounds.cells import END_MARK, draft_text, show_blanks
from dflash_tui.core.rounds.inspection import Column, Outcome
from dflash_tui.core.rounds.playback import PHASES
from engine.events import EmittedToken

from ...glyphs import fitting
from .step_table import MASK, VERDICTS, Cell, Scene, SceneWidget, explanation, title_line

LEAST_WIDTH, LONGEST_TEXT, MOST_WIDTH = 7, 13, 40
"""Cells of a position: the fewest, the most that a long text asks for, and the most."""
LEAST_HIGH, MOST_HIGH = 2, 16
"""Rows of a position at least and at most."""
ROWS_WITH_AIR, MOST_WORDS = 26, 2
"""Rows of a hall's round from which on blank lines part what it says, and lines of its words."""
SQUARE = 2.2
"""How many times as high as wide a cell of a terminal is, about."""
MAYBE, BONUS, NO_BONUS = "bonus?", "bonus", "no bonus"
QUIET = "$foreground on $foreground 15%"
PLACE = "italic $verdict-pending on $foreground 4%"
"""The style of the place behind the guesses where a bonus may come."""
GROUNDS: dict[Outcome, str] = {
    "accepted": "bold $landed-accepted-text on $landed-accepted",
    "rejected": "bold strike $verdict-rejected-text on $verdict-rejected",
    "discarded": "strike $verdict-rejected",
    "unverified": "italic $verdict-pending",
    "ended": "italic $verdict-pending",
    "bonus": "italic $verdict-pending",
    "plain": "italic $verdict-pending",
    "unknown": QUIET,
}
"""The style of a guess, once it is judged."""
OWN_GROUNDS: dict[str, str] = {
    "corrected": "bold underline $landed-corrected-text on $landed-corrected",
    "bonus": "bold $landed-bonus-text on $landed-bonus",
    "plain": "bold italic $verdict-plain-text on $verdict-plain",
}
"""The style of the target's own token, once it joins the text."""
OWN_MARKS = {"corrected": "⇒ ", "bonus": "+ "}


class LargeRound(SceneWidget):
    """Draws a round as a grid of large cells, as high as there is room."""

    DEFAULT_CSS = """
    LargeRound { height: 1fr; text-wrap: nowrap; text-overflow: clip; }
    """

    def render(self) -> Content:
        if self.scene is None:
            return Content()
        return Content("\n").join(round_lines(self.scene, self.size.width, self.size.height))


class HallRound(SceneWidget):
    """The step view for a hall: the round in large cells, and around it in lines what the table says."""

    DEFAULT_CSS = """
    HallRound { height: 1fr; text-wrap: nowrap; text-overflow: clip; }
    """

    def render(self) -> Content:
        if self.scene is None:
            return Content()
        return Content("\n").join(hall_lines(self.scene, self.size.width, self.size.height))


def hall_lines(scene: Scene, width: int, height: int) -> list[Content]:
    """Title, round, tally, phases, what happens, and keys: blank lines between them where there is room."""
    air = [Content()] * (height >= ROWS_WITH_AIR)
    words = [Content(line) for line in wrap(explanation(scene), max(width, 20))[:MOST_WORDS]]
    words += [Content()] * (MOST_WORDS - len(words))
    below = [Content.styled(scene.tally, "bold"), *air, _phases(scene), *air, *words]
    below.append(Content.styled(fitting(scene.keys, width), "$verdict-pending") if scene.keys else Content())
    room = max(height - 1 - len(below) - 2 * len(air), 2)
    drawn = round_lines(scene, width, room)
    return [title_line(scene, width), *air, *drawn, *[Content()] * (room - len(drawn)), *air, *below]


def _phases(scene: Scene) -> Content:
    """The names of a round's phases in a line, the one on show marked."""
    steps = [
        Content.styled(f" {name} ", "reverse bold" if phase == scene.phase else "")
        for phase, name in PHASE_NAMES.items()
    ]
    return Content.styled(" ▸ ", "$verdict-pending").join(steps)


def round_lines(scene: Scene, width: int, height: int) -> list[Content]:
    """The positions of a round in rows of cells that are all of one size, as large as there is room."""
    columns = _places(scene)
    cell, per_row = _grid(scene, columns, width, height)
    rows = [columns[start : start + per_row] for start in range(0, len(columns), per_row)]
    high = min(max(height // max(len(rows), 1), LEAST_HIGH), MOST_HIGH)
    lines = [line for row in rows for line in _row(scene, row, cell, high)]
    return lines[: max(height, 1)]


def _places(scene: Scene) -> tuple[Column, ...]:
    """Every guess, and from the beginning on the place behind them, where a bonus may come."""
    columns = scene.inspection.columns
    if len(columns) > len(scene.inspection.step.draft):
        return columns
    return (*columns, Column(len(columns) + 1, "bonus", None, None, None))


def _grid(scene: Scene, columns: Sequence[Column], width: int, height: int) -> tuple[int, int]:
    """The width of a cell, and how many stand in a row: of the arrangements in which the texts have room the one whose
    cells are largest, by their shorter side."""
    last_phase = replace(scene, phase=PHASES[-1])  # a round holds still from its first phase to its last
    texts = (text for column in columns for text in (_guess(last_phase, column), _own(last_phase, column)[0]))
    least = max(min(max(map(cell_len, texts), default=0) + 2, LONGEST_TEXT), LEAST_WIDTH)
    count = len(columns)
    fewest = ceil(count / max((width + 1) // (least + 1), 1))
    while fewest * LEAST_HIGH > height and least > LEAST_WIDTH:  # every position is there; a long text is cut
        least -= 1
        fewest = ceil(count / max((width + 1) // (least + 1), 1))
    sizes = []
    for rows in range(fewest, max(height // LEAST_HIGH, fewest) + 1):
        per_row = ceil(count / rows)
        cell, high = min((width + 1) // per_row - 1, MOST_WIDTH), min(height // rows, MOST_HIGH)
        sizes.append((min(cell, high * SQUARE), -rows, cell, per_row))
    _, _, cell, per_row = max(sizes)
    return cell, per_row


def _parts(high: int) -> str:
    """What the rows of a position are: blanks, the guess and its odds on its ground, then the target's own token on its
    ground, which is as large, and air."""
    if high <= 4:
        return "gt" if high == 2 else "got" + "." * (high - 3)
    upper = high // 2
    lower = high - 1 - upper
    above, over = (upper - 2) // 2, (lower - 1) // 2
    return "_" * above + "go" + "_" * (upper - 2 - above) + " " * over + "t" + " " * (lower - 1 - over) + "."


def _row(scene: Scene, columns: Sequence[Column], width: int, high: int) -> list[Content]:
    guesses = [(_guess(scene, column), _ground(scene, column)) for column in columns]
    odds = [(_odds(scene, column), _unlined(ground)) for column, (_, ground) in zip(columns, guesses, strict=True)]
    own = [_own(scene, column) for column in columns]
    parts: dict[str, list[Cell]] = {
        "g": guesses,
        "o": odds,
        "_": [("", ground) for _, ground in guesses],
        "t": own,
        " ": [("", ground if " on " in ground else "") for _, ground in own],
    }
    return [_line(parts[name], width) if name in parts else Content() for name in _parts(high)]


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
    """A style without underline and strike, which are for a token's text alone."""
    return " ".join(word for word in style.split() if word not in ("underline", "strike"))


def _guess(scene: Scene, column: Column) -> str:
    if column.draft is None:
        if not scene.inspection.step.draft:
            return ""
        return MAYBE if not scene.reached("judge") else BONUS if column.choice is not None else NO_BONUS
    return show_blanks(draft_text(column.draft)) if scene.reached("draft") else MASK


def _odds(scene: Scene, column: Column) -> str:
    known = column.draft is not None and column.draft.probability is not None and scene.reached("draft")
    return f"{column.draft.probability:.0%}" if known and column.draft else ""


def _ground(scene: Scene, column: Column) -> str:
    if column.draft is None:
        return PLACE if scene.inspection.step.draft else ""
    if not scene.reached("judge"):
        return QUIET
    return GROUNDS["rejected" if column.kept_further else column.outcome]


def _own(scene: Scene, column: Column) -> Cell:
    """What the target said at a position: a check under a kept guess, its own token where it wrote one."""
    choice: EmittedToken | None = column.choice
    if not scene.reached("verify"):
        return "", ""
    if choice is None and column.draft is None:
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
