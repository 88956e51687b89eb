"""What a pass of the target costs by its rows, as the rounds of a conversation measured it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from engine.events import MICROSECONDS

from .table import Table

BAR = 24
"""Cells of the longest bar."""
NOTE = (
    "A row for the newest token and one for each guess that is checked: a further guess is worth its row where the "
    "tokens that it may bring are worth the time that the row adds."
)


@dataclass(frozen=True, slots=True)
class PassCost:
    rows: int
    passes: int
    """How many such passes were timed."""
    ms: float
    """The median of what they took."""


def pass_costs(times: Iterable[tuple[int, int]]) -> tuple[PassCost, ...]:
    """By rows, from passes of so many rows and microseconds each."""
    by_rows: defaultdict[int, list[int]] = defaultdict(list)
    for rows, took in times:
        by_rows[rows].append(took)
    return tuple(
        PassCost(rows, len(each), median(each) / MICROSECONDS) for rows, each in sorted(by_rows.items())
    )  # fmt: skip


def pass_table(costs: Sequence[PassCost], now: int, drawn: bool) -> Table:
    """A bar for each width, as long as its passes take; ``now``: how many rows the round on show took. Without
    ``drawn`` there are no bars, for a table that is read out."""
    longest = max((each.ms for each in costs), default=1.0)
    rows = []
    for each in costs:
        here = ", this round" * (each.rows == now)
        bar = (f"{'█' * max(round(BAR * each.ms / longest), 1):<{BAR}}",) * drawn
        rows.append((f"{each.rows}{here}", f"{each.passes:,}", f"{each.ms:.2f} ms", *bar))
    head = ("rows of a pass", "passes", "median", *("",) * drawn) if rows else ()
    return Table("passes", "What a pass of the target costs", tuple(rows), head, NOTE)
