"""Speed and acceptance, drawn from the reducer's snapshot: one line each where rows are scarce, pictures elsewhere."""

from __future__ import annotations

from typing import ClassVar

from textual.content import Content
from textual.widget import Widget

from dflash_tui.core.reducer import TurnState
from dflash_tui.core.statistics import MAX_DRAFT, AcceptanceStatistics, RateMeter

from ..glyphs import axis, bars, large_number, resampled, scaled, spaced

PITCH = 2
"""Cells per column of a chart."""


class Gauge(Widget):
    """Shows one view of a turn. ``compact`` follows from the height the layout gives it."""

    DEFAULT_CSS = """
    Gauge { color: $foreground; height: auto; }
    """
    caption: ClassVar[str] = ""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.turn: TurnState | None = None

    def show(self, turn: TurnState | None) -> None:
        """Draw ``turn`` as it is now."""
        self.turn = turn
        self.refresh()

    def render(self) -> Content:
        if self.size.height <= 1:
            return self.compact()
        return Content("\n").join(self.lines(self.size.height))

    def compact(self) -> Content:
        raise NotImplementedError

    def lines(self, height: int) -> list[Content]:
        raise NotImplementedError

    def title(self, left: str, right: str = "") -> Content:
        gap = max(self.size.width - len(left) - len(right), 1)
        return Content.assemble((left, "bold"), " " * gap, (right, "$verdict-pending"))

    @property
    def acceptance(self) -> AcceptanceStatistics:
        return self.turn.acceptance if self.turn else AcceptanceStatistics()


class RateGauge(Gauge):
    """Tokens per second and mean acceptance length in large figures, with the rate's history."""

    def lines(self, height: int) -> list[Content]:
        rate = self.turn.rate if self.turn else RateMeter()
        length = self.acceptance.mean_acceptance_length
        half = self.size.width // 2
        speed = large_number(self._figure(rate))
        tau = large_number(f"{length:.2f}" if length else "–")
        figures = [
            Content.assemble((f"{left:<{half}}", "bold $primary"), (right, "bold $verdict-accepted"))
            for left, right in zip(speed, tau, strict=True)
        ]
        facts = Content.styled(f"mean {rate.mean:.0f} · peak {rate.peak:.0f}", "$verdict-pending")
        chart = bars(_history(rate, self.size.width), max(height - 5, 1))
        head = Content.assemble((f"{'tokens/s':<{half}}", "bold"), ("acceptance length", "bold"))
        return [head, *figures, *(Content.styled(row, "$primary") for row in chart), facts]

    def compact(self) -> Content:
        rate = self.turn.rate if self.turn else RateMeter()
        history = bars(_history(rate, max(self.size.width - 6, 1)), 1)[0]
        return Content.assemble(("tok/s ", "$verdict-pending"), (history, "$primary"))

    def _figure(self, rate: RateMeter) -> str:
        """The last second while it runs, the whole answer once it has ended."""
        value = rate.mean if self.turn and self.turn.reason else rate.now
        return f"{value:.0f}" if value else "–"


def _history(rate: RateMeter, width: int) -> list[float]:
    """The whole answer, however long it is."""
    return scaled(resampled(rate.history, width))


class HistogramGauge(Gauge):
    """How many drafted tokens each round accepted, 0 to 15."""

    def lines(self, height: int) -> list[Content]:
        acceptance = self.acceptance
        rows = bars(scaled(acceptance.histogram), max(height - 2, 1))
        labels = {0: "0", 5: "5", 10: "10", MAX_DRAFT: str(MAX_DRAFT)}
        return [
            self.title("accepted per round", f"n={acceptance.num_spec_steps}"),
            *(Content.styled(spaced(row, PITCH), "$verdict-accepted") for row in rows),
            Content.styled(axis(labels, MAX_DRAFT + 1, PITCH), "$verdict-pending"),
        ]

    def compact(self) -> Content:
        chart = bars(scaled(self.acceptance.histogram), 1)[0]
        return _labelled("kept 0", chart, "$verdict-accepted")


class PositionGauge(Gauge):
    """How likely the draft at each position is accepted once every draft before it was."""

    def lines(self, height: int) -> list[Content]:
        positions = self.acceptance.positions
        rows = bars([position.rate or 0.0 for position in positions], max(height - 2, 1))
        reached = [position.reached for position in positions if position.reached]
        labels = {0: "1", 4: "5", 9: "10", MAX_DRAFT - 1: str(MAX_DRAFT)}
        return [
            self.title("accepted if reached", f"n={reached[0]}…{reached[-1]}" if reached else "n=0"),
            *(Content.styled(spaced(row, PITCH), "$verdict-bonus") for row in rows),
            Content.styled(axis(labels, MAX_DRAFT, PITCH), "$verdict-pending"),
        ]

    def compact(self) -> Content:
        chart = bars([position.rate or 0.0 for position in self.acceptance.positions], 1)[0]
        return _labelled("if reached 1", chart, "$verdict-bonus")


def _labelled(left: str, chart: str, style: str) -> Content:
    return Content.assemble((left, "$verdict-pending"), (chart, style), (str(MAX_DRAFT), "$verdict-pending"))
