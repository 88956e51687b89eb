"""Speed, acceptance and cost at one moment: a line each where rows are scarce, pictures elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from dflash_tui.core.figures.labels import (
    AS_FAST,
    CHECKING,
    KEPT,
    PASSES,
    RIGHT_SO_FAR,
    SPEED_UP,
    TOKENS_PER_ROUND,
    TOKENS_PER_SECOND,
)
from dflash_tui.core.figures.statistics import CLOCKS, Rate
from dflash_tui.core.figures.tables import GaugeFacts
from dflash_tui.core.text.counted import counted
from engine.rounds.statistics import MAX_DRAFT

from ..glyphs import axis, bars, large_number, scaled, spaced
from ..options import options_of

NARROW_PITCH, WIDE_PITCH = 2, 4
"""Cells per column of a chart, at least and at most."""
MUTED = "$verdict-pending"


class Gauge(Widget, can_focus=True):
    """Draws a part of :class:`GaugeFacts`, in one ``compact`` line or as ``lines``. Enter or a click asks for its
    table."""

    DEFAULT_CSS = """
    Gauge {
        color: $foreground; height: auto;
        &:focus { background: $panel; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "open", "Table", show=False)]
    section: ClassVar[str] = ""
    """Id of the table that Enter opens."""
    least: ClassVar[int] = 1
    """Rows that ``lines`` needs."""
    compact_width: ClassVar[int] = 16
    """Cells that ``compact`` needs."""

    @dataclass
    class Opened(Message):
        """The user wants the table behind a gauge."""

        section: str

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.facts = GaugeFacts()
        self.tooltip = "Enter or a click shows the figures"

    def show(self, facts: GaugeFacts) -> None:
        """Draw these facts; costs nothing when this gauge's part of them is the same."""
        changed = self.redraw_key(facts) != self.redraw_key(self.facts)
        self.facts = facts
        if changed:
            self.refresh()

    def redraw_key(self, facts: GaugeFacts) -> object:
        raise NotImplementedError

    def render(self) -> Content:
        if self.size.height <= 1:
            return self.compact()
        return Content("\n").join(self.lines(self.size.height))

    def compact(self) -> Content:
        raise NotImplementedError

    def lines(self, height: int) -> list[Content]:
        raise NotImplementedError

    def title(self, name: str) -> Content:
        return Content.assemble((name, "bold"), " " * max(self.size.width - len(name), 0))

    def action_open(self) -> None:
        self.post_message(self.Opened(self.section))

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.action_open()


class RateGauge(Gauge):
    """How many times as fast as the target alone in large figures, or tokens per second where that is not known, with
    the rate's history."""

    section = "speed"
    least = 5
    compact_width = 13

    def redraw_key(self, facts: GaugeFacts) -> object:
        turn = facts.turn
        return (
            turn.step is None,
            turn.rate,
            turn.acceptance,
            turn.ttft_ms,
            turn.finished,
            facts.speculation,
            facts.times,
            turn.totals,
            turn.speed_up,
        )

    def lines(self, height: int) -> list[Content]:
        ascii = options_of(self).ascii
        faster = self.facts.turn.speed_up
        number = self._speed if faster is None else f"{faster.times:.1f}×"
        head = TOKENS_PER_SECOND.name if faster is None else f"times {AS_FAST}{faster.remark}"
        head = head if faster is None or len(head) <= self.size.width else f"{SPEED_UP.name}{faster.remark}"
        digits = large_number(number, ascii)
        rate_lines = self._rate_lines()
        room_beside = self.size.width - len(digits[0]) - 2
        fits = all(len(line) <= room_beside for line in rate_lines)
        right_column = [*(rate_lines if fits else ()), "", "", ""]
        figures = [
            Content.assemble((f"{row}  ", "bold $primary"), words)
            for row, words in zip(digits, right_column, strict=False)
        ]
        while not fits and rate_lines and len(" · ".join(rate_lines)) > self.size.width:
            rate_lines.pop()
        below = [] if fits else [Content.styled(" · ".join(rate_lines), MUTED)]
        words = [*below, *self._shares(), *self._remark()][: max(height - 4, 0)]
        room = height - 4 - len(words)
        chart = bars(_history(self.facts.turn.rate, self.size.width), room) if room else []
        return [Content.styled(head, "bold"), *figures, *(Content.styled(row, MUTED) for row in chart), *words]

    def compact(self) -> Content:
        if (faster := self.facts.turn.speed_up) is not None:
            return Content.assemble((f"{'~' * faster.about}{faster.times:.1f}×", "bold $primary"), (" as fast", MUTED))
        speed, unit = self._speed, f" {TOKENS_PER_SECOND.short} "
        room = max(self.size.width - len(speed + unit), 1)
        history = bars(_history(self.facts.turn.rate, room), 1)[0]
        return Content.assemble((speed, "bold $primary"), (unit, MUTED), (history, "$primary"))

    @property
    def _speed(self) -> str:
        """Tokens per second in words: of the last second while an answer runs, of the whole answer once it has
        ended."""
        turn = self.facts.turn
        value = turn.rate.mean if turn.finished else turn.rate.now
        return f"{value:,.0f}".replace(",", " ") if value else "–"

    def _rate_lines(self) -> list[str]:
        """Other figures of the answer, which stand beside the digits, a line each, where they have room."""
        turn = self.facts.turn
        length = turn.tokens_per_round
        now = "" if turn.finished else " now"  # the digits are of the whole answer
        lines = [] if turn.speed_up is None else [f"{self._speed} {TOKENS_PER_SECOND.name}{now}"]
        lines += [f"{length:.2f} {TOKENS_PER_ROUND.short}"] if length else []
        return lines + ([f"first {milliseconds(turn.ttft_ms)}"] if turn.ttft_ms is not None else [])

    def _shares(self) -> list[Content]:
        """Who guessed what was accepted, where that is not the drafter alone."""
        shares = self.facts.turn.acceptance.shares
        text = " · ".join(f"{name} {share:.0%}" for name, share in shares)
        return [Content.styled(f"guessed: {text}", MUTED)] if shares else []

    def _remark(self) -> list[Content]:
        """A line that says why a figure is missing, if one is."""
        if not self.facts.speculation:
            return [Content.styled("the target alone: no speculation", MUTED)]
        if self.facts.times != "engine":
            return [Content.styled(f"times{CLOCKS['arrival']}", MUTED)]
        return []


def _history(rate: Rate, width: int) -> list[float]:
    """The rates of the whole answer as ``width`` values in [0, 1], or fewer for a short one."""
    return scaled(rate.history.resampled(width))


def milliseconds(value: float) -> str:
    return f"{value:.0f} ms" if value < 1000 else f"{value / 1e3:.1f} s"


class ColumnChart(Gauge):
    """One column per number of drafted tokens, ``pitch`` cells apart."""

    least = 3
    columns: ClassVar[int] = MAX_DRAFT

    @property
    def pitch(self) -> int:
        """Cells from one column to the next: the same for all charts of one width, however many columns they have."""
        return min(max(self.size.width // (MAX_DRAFT + 2), NARROW_PITCH), WIDE_PITCH)

    def column_at(self, x: int) -> int | None:
        """The column drawn in cell ``x``; None right of the chart."""
        return x // self.pitch if x < self.columns * self.pitch else None

    def widened(self, row: str) -> str:
        """A row of bars, one character each, drawn ``pitch`` cells apart: one cell thick at a pitch of 2, else all but
        one."""
        return (
            spaced("".join(row), self.pitch)
            if self.pitch == NARROW_PITCH
            else "".join(character * (self.pitch - 1) + " " for character in row)
        )


class HistogramGauge(ColumnChart):
    """How many drafted tokens each round accepted, 0 to 15. A click on a bar picks it, as do ← → and Enter."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "choose(-1)", "Bar before", show=False),
        Binding("right", "choose(1)", "Next bar", show=False),
    ]
    section = "histogram"
    compact_width = 24
    columns = MAX_DRAFT + 1

    @dataclass
    class Picked(Message):
        """The user picked a bar that has rounds in it."""

        accepted: int

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.chosen: int | None = None
        """How many accepted drafts the bar that Enter picks stands for; None for no bar."""

    def redraw_key(self, facts: GaugeFacts) -> object:
        return facts.turn.acceptance.histogram

    def lines(self, height: int) -> list[Content]:
        acceptance = self.facts.turn.acceptance
        rows = bars(scaled(self._counts), max(height - 2, 1))
        labels = {0: "0", 5: "5", 10: "10", MAX_DRAFT: f"{MAX_DRAFT}{'+' * (len(acceptance.histogram) > self.columns)}"}
        return [
            self.title(KEPT.name),
            *(Content.styled(self.widened(row), "$verdict-accepted") for row in rows),
            self._choice() or Content.styled(axis(labels, self.columns, self.pitch), MUTED),
        ]

    @property
    def _counts(self) -> tuple[int, ...]:
        """How many rounds accepted each number of drafts; the last column counts those that accepted more, too."""
        histogram = self.facts.turn.acceptance.histogram
        return (*histogram[:MAX_DRAFT], sum(histogram[MAX_DRAFT:]))

    def _choice(self) -> Content | None:
        """The line that takes the axis' place while a bar is chosen: which one, and what is in it."""
        if self.chosen is None or not self.has_focus:
            return None
        count = self._counts[self.chosen]
        words = f"{self.chosen}: {counted(count, 'round')}"
        left = self.chosen * self.pitch
        before = left > self.size.width - len(words) - 2
        line = f"{words:>{left - 1}} ▲" if before else f"{'':{left}}▲ {words}"
        return Content.styled(line, "bold $primary")

    def compact(self) -> Content:
        chart = bars(scaled(self._counts), 1)[0]
        return _labelled("kept 0", chart, "$verdict-accepted")

    def action_choose(self, direction: int) -> None:
        """Choose the next bar that has rounds in it: on the right (1) or the left (-1)."""
        filled = [column for column, count in enumerate(self._counts) if count]
        here = self.chosen if self.chosen is not None else (-1 if direction > 0 else self.columns)
        ahead = [column for column in filled if (column - here) * direction > 0]
        if ahead:
            self.chosen = ahead[0] if direction > 0 else ahead[-1]
            self.refresh()

    def action_open(self) -> None:
        if self.chosen is not None and self._counts[self.chosen]:
            self.post_message(self.Picked(self.chosen))
        else:
            super().action_open()

    def on_blur(self) -> None:
        self.chosen = None
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Choose a bar; elsewhere the table opens, which Textual asks of the class above."""
        column = self.column_at(event.x) if 0 < event.y < self.size.height - 1 else None
        if column is not None and self._counts[column]:
            event.stop()
            event.prevent_default()
            self.post_message(self.Picked(column))


class PositionGauge(ColumnChart):
    """How likely the draft at each place is accepted once every draft before it was."""

    section = "positions"
    compact_width = 26

    def redraw_key(self, facts: GaugeFacts) -> object:
        return facts.turn.acceptance.positions

    def lines(self, height: int) -> list[Content]:
        labels = {0: "1", 4: "5", 9: "10", MAX_DRAFT - 1: str(MAX_DRAFT)}
        rows = bars(self._rates, max(height - 2, 1))
        return [
            self.title(RIGHT_SO_FAR.name),
            *(Content.styled(self.widened(row), "$verdict-bonus") for row in rows),
            Content.styled(axis(labels, self.columns, self.pitch), MUTED),
        ]

    @property
    def _rates(self) -> list[float]:
        return [position.rate or 0.0 for position in self.facts.turn.acceptance.positions[:MAX_DRAFT]]

    def compact(self) -> Content:
        return _labelled(f"{RIGHT_SO_FAR.short} 1", bars(self._rates, 1)[0], "$verdict-bonus")


class PassGauge(ColumnChart):
    """What the target's pass costs by its rows, where that was timed, and the rows of the round on show."""

    section = "passes"
    columns = MAX_DRAFT + 1

    def redraw_key(self, facts: GaugeFacts) -> object:
        return facts.pass_ms, facts.rows

    def lines(self, height: int) -> list[Content]:
        costs = self._costs
        rows = bars(scaled(costs[: self.columns]), max(height - 2, 1))
        labels = {0: "1", 4: "5", 9: "10", MAX_DRAFT: str(self.columns)}
        now = min(self.facts.rows or self.columns, len(costs)) - 1
        if self.facts.rows:
            labels[min(now, MAX_DRAFT)] = "▲"
        line = axis(labels, self.columns, self.pitch)
        below = Content.styled(line, MUTED).highlight_regex("▲", style="bold $primary")
        scale, unit = (1e3, "s") if costs and costs[-1] >= 1e3 else (1, "ms")
        shown = [f"{row + 1}: {costs[row] / scale:.3g}" for row in sorted({0, now}) if row >= 0]
        if len(f"{PASSES.name} {', '.join(shown)} {unit}") > self.size.width:
            shown = shown[-1:]  # what this round's rows cost
        return [
            self.title(f"{PASSES.name} {', '.join(shown)} {unit}"),
            *(self._coloured(self.widened(row)) for row in rows),
            below,
        ]

    def _coloured(self, row: str) -> Content:
        """A row of bars: those that were timed stand out from those drawn between them."""
        styles = ("$verdict-accepted" if cost else MUTED for cost in self.facts.pass_ms)
        cells = (row[start : start + self.pitch] for start in range(0, len(row), self.pitch))
        return Content.assemble(*zip(cells, styles, strict=False))

    @property
    def _costs(self) -> list[float]:
        """Milliseconds by rows, up to the last that was timed: those between two of them on the straight line, as the
        engine counts them."""
        known = [(row, cost) for row, cost in enumerate(self.facts.pass_ms) if cost]
        costs = [cost for _, cost in known[:1]]
        for (low, start), (high, end) in pairwise(known):
            costs += [start + (end - start) * (row - low) / (high - low) for row in range(low + 1, high + 1)]
        return costs

    def compact(self) -> Content:
        return _labelled(f"{CHECKING.name} 1", bars(scaled(self._costs[: self.columns]), 1)[0], "$verdict-accepted")


def _labelled(left: str, chart: str, style: str) -> Content:
    return Content.assemble((left, MUTED), (chart, style), (str(MAX_DRAFT), MUTED))
