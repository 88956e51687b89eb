"""Prints figures as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from ...measured.ceiling import Ceiling
from .measure import PrefillFigures, RoundFigures

ROUND_HEADS = (
    "rows", "experts", "verify ms", "GB", "share", "draft ms", "GB", "share", "round ms", "floor", "share", "tokens",
    "tok/s",
)  # fmt: skip
PREFILL_HEADS = ("prompt", "prefill ms", "first token", "GB", "share")


def ceiling_line(ceiling: Ceiling) -> str:
    return f"memory: copies {ceiling.copy / 1e12:.2f} TB/s, reads {ceiling.read / 1e12:.2f} TB/s (shares are of copies)"


def round_tables(figures: Iterable[RoundFigures], ceiling: Ceiling) -> Iterator[str]:
    """One table for each context and routing; the first row of each is plain decoding."""
    for (context, routing), group in groupby(figures, lambda each: (each.context, each.routing)):
        rows = [_round_row(each, ceiling) for each in group]
        yield f"\ncontext {context}, {routing} routing\n{table(ROUND_HEADS, rows)}"


def _round_row(each: RoundFigures, ceiling: Ceiling) -> list[str]:
    draft = [f"{each.draft_ms:.3f}", _gigabytes(each.draft_bytes), _percent(each.draft_share)]
    return [
        str(each.width),
        f"{each.experts:.1f}",
        f"{each.verify_ms:.3f}",
        _gigabytes(each.verify_bytes),
        _percent(each.verify_share),
        *(draft if each.width > 1 else ["-"] * 3),
        f"{each.round_ms:.3f}",
        f"{(each.verify_bytes + each.draft_bytes) / ceiling.copy * 1e3:.3f}",
        _percent(each.share),
        f"{each.acceptance_length:.2f}",
        f"{each.tokens_per_second:.0f}",
    ]


def prefill_table(figures: Iterable[PrefillFigures]) -> str:
    rows = [
        [
            str(each.rows),
            f"{each.prefill_ms:.1f}",
            f"{each.first_token_ms:.1f}",
            _gigabytes(each.bytes),
            _percent(each.share),
        ]
        for each in figures
    ]
    return "\n" + table(PREFILL_HEADS, rows)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose columns are as wide as what is in them, with numbers to the right."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = ("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (heads, *rows))
    return "\n".join(lines)


def _gigabytes(num_bytes: float) -> str:
    return f"{num_bytes / 1e9:.4g}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"
