"""What a pass of the target costs by its rows: as timed when the pair was loaded, and in a conversation's rounds."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from engine.events import MICROSECONDS
from engine.speculation.live_costs import ENDS

from .statistics import NOT_KNOWN
from .table import Table

BAR = 20
"""Cells of the longest bar."""
NOTE = (
    "A row for the newest token and one for each guess that is checked: a further guess is worth its row where the "
    "tokens that it may bring are worth the time that the row adds."
)
AT_START = " At the start the most rows of each line were timed; more rows count as no cheaper."


@dataclass(frozen=True, slots=True)
class PassCost:
    """Passes of one kind: from ``least`` to ``most`` rows."""

    least: int
    most: int
    timed_ms: float
    """What one of ``most`` rows took when the pair was loaded; 0 where that wasn't timed."""
    passes: int
    """How many such passes were timed in answers."""
    ms: float
    """The median of what these took; 0 without any."""


def pass_costs(times: Iterable[tuple[int, int]], timed: Sequence[float] = ()) -> tuple[PassCost, ...]:
    """By rows, from passes of so many rows and microseconds each, and from ``EngineReady.pass_ms``."""
    by_kind: defaultdict[int, list[int]] = defaultdict(list)
    for rows, took in times:
        by_kind[bisect_left(ENDS, rows)].append(took)
    costs = []
    for kind, (before, most) in enumerate(zip((0, *ENDS), ENDS, strict=False)):
        at_start = timed[most - 1] if most <= len(timed) else 0.0
        seen = by_kind[kind]
        if at_start or seen:
            typical = median(seen) / MICROSECONDS if seen else 0.0
            costs.append(PassCost(before + 1, most, at_start, len(seen), typical))
    return tuple(costs)


def pass_table(costs: Sequence[PassCost], now: int, drawn: bool) -> Table:
    """A bar for each kind of pass, as long as it took when the pair was loaded, or else in answers; ``now``: how many
    rows the round on show took. Without ``drawn`` there are no bars, for a table that is read out."""
    title = "What a pass of the target costs"
    if not costs:
        return Table("passes", title, (("by its rows", NOT_KNOWN),) * bool(now))
    all_timed = all(each.timed_ms for each in costs)
    lengths = [each.timed_ms if all_timed else each.ms for each in costs]
    rows = []
    for each, length in zip(costs, lengths, strict=True):
        which = str(each.most) if each.least == each.most else f"{each.least} to {each.most}"
        here = f", now{f' {now}' * (each.least < each.most)}" * (each.least <= now <= each.most)
        took = tuple(f"{ms:.2f} ms" if ms else "-" for ms in (each.timed_ms, each.ms))
        bar = (f"{'█' * max(round(BAR * length / max(lengths)), length > 0):<{BAR}}",) * drawn
        rows.append((which + here, *took, f"{each.passes:,}", *bar))
    head = ("rows", "at the start", "in answers", "passes", *("",) * drawn)
    return Table("passes", title, tuple(rows), head, NOTE + AT_START * any(each.timed_ms for each in costs))
