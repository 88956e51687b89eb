"""An answer as pieces of text in the styles of the transcript."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.events import Step

from ..conversation.turn import Turn
from ..figures.labels import TOKENS_PER_ROUND
from ..rounds.cells import Fate, round_cells, show_blanks
from ..rounds.passes import PassRows
from ..text.counted import counted
from ..text.spans import Span, token_style
from ..text.wrapping import wrap
from .document import CellTable, ExportedPage, Heading, Plain, Prose, RoundFigure

PASSES_WIDTH = 84
"""Cells of a picture of passes, and of a table at most, where a document is text."""


def document_spans(document: ExportedPage) -> Iterator[Span]:
    """The whole document, as a terminal would show it."""
    for section in document.one_by_one:
        yield from section_spans(section)
    origin = document.origin.describe()
    if origin:
        yield Span(f"{origin}\n", "note")


def section_spans(section: Plain) -> Iterator[Span]:
    match section:
        case Heading():
            yield Span(f"{section.text}\n\n", "prompt")
        case Prose():
            yield Span(f"{section.text}\n\n", "text")
        case CellTable():
            yield Span("\n".join(table_lines(_narrowed(section))) + "\n\n", "text")
        case RoundFigure():
            yield Span(round_line(section.step), "text")
            yield Span(f"\n{section.caption}\n\n", "note")
        case PassRows():
            yield Span(f"{section.text(PASSES_WIDTH)}\n\n", "text")
        case Turn():
            yield from question_spans(section)
            yield from token_spans(section.rounds)
            yield Span(f"{gap_after(section)}{answer_summary(section)}\n\n", "note")


def question_spans(answer: Turn) -> Iterator[Span]:
    if answer.name:
        yield Span(f"{answer.name}\n", "note")
    if answer.question:
        yield Span(answer.question, "prompt")
        yield Span("\n\n", "plain")


def token_spans(steps: Iterable[Step]) -> Iterator[Span]:
    """Tokens in the style of their verdict; a thought ends with an empty line."""
    thinking = False
    for step in steps:
        for token in step.emitted:
            if token.channel == "control" or not token.text:
                continue
            thought = token.channel == "thought"
            if thinking and not thought:
                yield Span("\n\n", "thought")
            thinking = thought
            yield Span(token.text, token_style(token.channel, token.verdict))


MARKS: dict[Fate, str] = {
    "accepted": "✓", "rejected": "✗", "discarded": "✂", "unverified": "…", "ended": "·", "corrected": "⇒", "bonus": "+",
    "unknown": "?",
}  # fmt: skip
"""The mark in front of a token by its fate, where a round's tokens stand in a row."""


def round_line(step: Step) -> str:
    """A round's drafts and the target's own token, each behind its mark, blanks made visible."""
    return "  ".join(f"{MARKS.get(cell.fate, '')}{show_blanks(cell.text)}" for cell in round_cells(step))


def gap_after(answer: Turn) -> str:
    return "\n" if answer.text.endswith("\n") else "\n\n"


def answer_summary(answer: Turn) -> str:
    """One line under an answer: what it cost."""
    facts = answer.statistics
    faster = [] if answer.speed_up is None else [answer.speed_up.words]
    parts = [counted(facts.num_tokens, "token"), *faster, f"first after {facts.ttft_ms:.0f} ms"]
    if facts.tok_s > 0:
        parts.append(f"{facts.tok_s:.0f} tok/s")
    if facts.num_spec_steps:
        parts.append(f"{facts.tokens_per_round:.2f} {TOKENS_PER_ROUND.name}")
    if answer.ending not in (None, "stop"):
        parts.append(
            {"length": "reached the token limit", "context": "the context was full"}.get(
                str(answer.ending), f"{answer.ending}"
            )
        )
    if answer.ending is None:
        parts.append("the record ends here")
    return " · ".join(parts)


def _narrowed(table: CellTable) -> CellTable:
    """The table with its widest column wrapped, if it is wider than ``PASSES_WIDTH``: further lines of a cell are rows
    whose other cells are empty."""
    widths = [max(map(len, column)) for column in zip(*table.rows, strict=True)]
    over, widest = sum(widths) + 2 * (len(widths) - 1) - PASSES_WIDTH, widths.index(max(widths))
    if over <= 0:
        return table
    rows: list[tuple[str, ...]] = []
    for row in table.rows:
        first, *further = (line.rstrip() for line in wrap(row[widest], max(widths[widest] - over, 8)))
        rows.append((*row[:widest], first, *row[widest + 1 :]))
        rows += [(*("",) * widest, line, *("",) * (len(row) - widest - 1)) for line in further]
    return CellTable(tuple(rows))


def table_lines(table: CellTable, left: int = 1) -> list[str]:
    """Columns aligned with blanks: the first ``left`` to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in table.rows) for column in range(len(table.rows[0]))]
    return [
        "  ".join(
            f"{cell:<{width}}" if column < left else f"{cell:>{width}}"
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table.rows
    ]
