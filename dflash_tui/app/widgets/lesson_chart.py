"""What a lesson draws besides rounds and answers: bars."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from dflash_tui.core.export.document import ExportedAnswer
from dflash_tui.core.figures.labels import CHECKING, GUESSING, TOKENS_PER_ROUND
from dflash_tui.core.lesson.facts import turn_facts
from dflash_tui.core.lesson.pages import name_of

from ..glyphs import axis, bars

NAME_WIDTH, FIGURES_WIDTH, SHORTEST_BAR = 22, 30, 4
CHART_HEIGHT, WORDS_HEIGHT = 24, 3
"""Rows of a histogram's bars at most, and of the words above and below them."""
PITCHES = (3, 2, 1)
"""Cells from one bar of a histogram to the next: the first that has room."""
NUMBERS = "$verdict-pending"


def spread(lines: list[Content], height: int) -> list[Content]:
    """Each line as high as there is room for: a bar of several rows, and air below it."""
    thick = min(height // max(len(lines), 1) - 1, 3)
    if thick < 1:
        return lines
    return [
        row for line in lines for row in ([line, *[_bare(line)] * (thick - 1), Content()] if line.plain else [line])
    ]


def _bare(line: Content) -> Content:
    """The bar of a line without its words, for the further rows of a bar: the words stand beside the first."""
    bar = {"━", "─", "█", "░"}
    kept = "".join(cell if cell in bar else " " for cell in line.plain)
    return Content(kept, list(line.spans))


def histogram_lines(answers: Sequence[ExportedAnswer], width: int, height: int) -> list[Content]:
    """A chart per answer, side by side, on one scale: rounds by the number of guesses kept, as shares of all."""
    room = max(width // len(answers), 1)
    counts = [answer.statistics.acceptance_histogram for answer in answers]
    longest = max(map(len, counts))
    pitch = next((pitch for pitch in PITCHES if longest * pitch < room), PITCHES[-1])
    rows = max(min(height - WORDS_HEIGHT, CHART_HEIGHT), 1)
    shares = [[each / max(sum(row), 1) for each in (*row, *[0] * (longest - len(row)))] for row in counts]
    most = max((share for row in shares for share in row), default=0.0) or 1.0
    charts = [
        _histogram(answer, [share / most for share in row], pitch, rows, room)
        for answer, row in zip(answers, shares, strict=True)
    ]
    return [Content("").join(_padded(line, room) for line in row) for row in zip(*charts, strict=True)]


def _histogram(answer: ExportedAnswer, values: Sequence[float], pitch: int, height: int, width: int) -> list[Content]:
    facts = answer.statistics
    length = f"{facts.tokens_per_round:.2f} {TOKENS_PER_ROUND.name}"
    words = f"{length}, {facts.num_spec_steps} rounds"
    labels = {kept: str(kept) for kept in range(0, len(values), 1 if pitch == PITCHES[0] else 5)}
    rows = bars(values, height)
    return [
        Content.styled(answer.question, "bold"),
        *(
            Content.styled("".join((cell * max(pitch - 1, 1)).ljust(pitch) for cell in row), "$verdict-accepted")
            for row in rows
        ),
        Content.styled(axis(labels, len(values), pitch), NUMBERS),
        Content.styled(words if len(words) < width else length, NUMBERS),
    ]


def _padded(line: Content, width: int) -> Content:
    """``line`` in exactly ``width`` cells: filled up with blanks, or cut short."""
    line = line.truncate(width - 1, ellipsis=True)
    return line + " " * (width - line.cell_length)


def times_lines(answers: Sequence[ExportedAnswer], width: int) -> list[Content]:
    """A bar per answer: what a round takes, drafting and verifying."""
    facts = [turn_facts(1, answer) for answer in answers]
    longest = max(float(values["t1.round_ms"]) for values in facts)
    room = max(width - NAME_WIDTH - FIGURES_WIDTH, SHORTEST_BAR)
    return [_times(answer, values, room / longest) for answer, values in zip(answers, facts, strict=True)]


def _times(answer: ExportedAnswer, values: dict[str, float | int | str], cells_per_ms: float) -> Content:
    draft, verify, whole = (float(values[f"t1.{name}"]) for name in ("draft_ms", "verify_ms", "round_ms"))
    drafting, verifying, other = (round(each * cells_per_ms) for each in (draft, verify, whole - draft - verify))
    return Content.assemble(
        (name_of(answer)[:NAME_WIDTH].ljust(NAME_WIDTH), "bold"),
        ("░" * drafting, "$verdict-corrected"),
        ("█" * verifying, "$verdict-accepted"),
        ("─" * other, NUMBERS),
        f" {GUESSING.name} {draft:.1f} + {CHECKING.name} {verify:.1f} = {whole:.1f} ms",
    )
