"""The picture of a memory that forgets, and of what a round does to it: what going back means where a target recurs."""

from __future__ import annotations

from engine.events import Step

from ..export.document import ExportedAnswer
from ..rounds.cells import show_blanks
from ..rounds.playback import PHASES, Phase
from .drawn import NAME_WIDTH, Ink, Line, said

FADES = "░▒▓█"
"""The characters of the memory's cells, the oldest first."""
LONGEST_ROW, MOST_CELLS, HEIGHT = 9, 64, 2
WORDS: dict[Phase, str] = {
    "block": "The memory stands behind all that was said. The older, the fainter: to learn it forgets.",
    "draft": "The newest token and {drafts} guesses: {rows} rows, which lie beside it.",
    "verify": "The target reads them one behind the other. What each would change is noted beside the memory.",
    "judge": "Of {rows} rows {kept} count; {fallen} fall, with the first guess that was wrong.",
    "emit": "Those that count are taken in, as if they had come alone. The others never touched it: nothing is undone.",
}


def memory_lines(answer: ExportedAnswer, index: int, phase: Phase, width: int) -> list[Line]:
    """Round ``index`` of an answer at a phase, in lines of ``width`` cells."""
    step = answer.steps[index]
    reached = PHASES.index(phase)
    rows = _rows(answer, index) if reached >= PHASES.index("draft") else []
    kept = len(step.emitted)
    words = WORDS[phase].format(
        drafts=step.verify_width - 1, rows=step.verify_width, kept=kept, fallen=step.verify_width - kept
    )
    lines: list[Line] = [*_memory(kept if phase == "emit" else 0, width), ()]
    judged, gone = reached >= PHASES.index("judge"), phase == "emit"
    beside: list[tuple[str, str, Ink]] = [
        (text, mark if judged else "", "row" if not judged else "kept" if place < kept else "fallen")
        for place, (text, mark) in enumerate(rows)
    ]
    lines += _beside([each for each in beside if not (gone and each[2] == "kept")], width)
    return [*lines, (), *said(words, width)]


def _memory(fresh: int, width: int) -> list[Line]:
    """Lines with the memory's cells, the last ``fresh`` of which this round has brought."""
    count = max(min(width - NAME_WIDTH, MOST_CELLS), 1)
    cells = "".join(FADES[place * len(FADES) // count] for place in range(count))
    old = count - min(fresh, count)
    names = f"{'memory':<{NAME_WIDTH}}", *[" " * NAME_WIDTH] * (HEIGHT - 1)
    return [((name, "name"), (cells[:old], "memory"), (cells[old:], "kept")) for name in names]


def _rows(answer: ExportedAnswer, index: int) -> list[tuple[str, str]]:
    """Text and mark of each row of the round's pass."""
    step = answer.steps[index]
    before = [token.text for earlier in answer.steps[:index] for token in earlier.emitted]
    guesses = [token.text or "?" for token in step.draft[: step.verify_width - 1]]
    return [
        (show_blanks(text)[:LONGEST_ROW], _mark(step, place)) for place, text in enumerate([*before[-1:], *guesses])
    ]


def _mark(step: Step, place: int) -> str:
    return "✓" if place < len(step.emitted) else "✗" if place == len(step.emitted) else "✂"


def _beside(rows: list[tuple[str, str, Ink]], width: int) -> list[Line]:
    """The rows of a pass, as text, mark and ink each, in as many lines as they take."""
    lines: list[Line] = []
    line: list[tuple[str, Ink]] = []
    used = 0
    for text, mark, ink in rows:
        cell = f"{mark}{text}"
        if used and used + len(cell) + 1 > width - NAME_WIDTH:
            lines.append(tuple(line))
            line, used = [], 0
        if not used:
            line.append((" " * NAME_WIDTH if lines else f"{'beside':<{NAME_WIDTH}}", "name"))
        line += [(cell, ink), (" ", "row")]
        used += len(cell) + 1
    return [*lines, tuple(line)] if line else lines
