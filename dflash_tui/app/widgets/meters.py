"""Gauges that are bars: what a round costs, and how full the context is."""

from __future__ import annotations

from typing import ClassVar

from textual.content import Content

from dflash_tui.core.conversation.context import ALMOST_FULL, NEARLY_FULL
from dflash_tui.core.figures.labels import CHECKING, CONTEXT, COST, GUESSING, REST
from dflash_tui.core.figures.statistics import NOT_KNOWN
from dflash_tui.core.figures.tables import GaugeFacts
from dflash_tui.core.text.counted import ms_text
from engine.events import Clock

from .gauges import MUTED, Gauge

PARTS_NOT_KNOWN: dict[Clock, str] = {
    "engine": ", parts", "server": " by server, parts", "arrival": " by arrival, parts",
}  # fmt: skip
"""The words behind a round's milliseconds when its parts are not known, by whose clock took them."""


class CostGauge(Gauge):
    """Shows where the milliseconds of a round go: draft, verify and the rest, as one bar."""

    section = "cost"
    least = 2
    compact_width = 22
    PARTS: ClassVar[tuple[tuple[str, str, str], ...]] = (
        (GUESSING.name, "▒", "$verdict-corrected"), (CHECKING.name, "█", "$verdict-accepted"), (REST.name, "░", MUTED),
    )  # fmt: skip

    def redraw_key(self, facts: GaugeFacts) -> object:
        return facts.turn.cost, facts.times

    def lines(self, height: int) -> list[Content]:
        cost = self.facts.turn.cost
        if not cost.rounds:
            return [self.title(COST.name), self._bar(self.size.width)]
        if cost.parts is None:
            whole = f" {short(cost.mean_ms, cost.mean_ms)}{PARTS_NOT_KNOWN[self.facts.times]}"
            text = next((words for words in (f"{whole} {NOT_KNOWN}", f"{whole} unknown") if self._fits(words)), whole)
            return [
                Content.assemble((COST.short, "bold"), (text.removesuffix(", parts"), MUTED)),
                self._bar(self.size.width),
            ]
        parts = zip(self.PARTS, cost.parts, strict=True)
        words = [(f" {name} {short(value, cost.mean_ms)}", style) for (name, _, style), value in parts]
        while not self._fits("".join(word for word, _ in words)):
            words.pop()
        return [Content.assemble((COST.short, "bold"), *words), self._bar(self.size.width)]

    def _fits(self, words: str) -> bool:
        return len(COST.short) + len(words) <= self.size.width

    def compact(self) -> Content:
        cost = self.facts.turn.cost
        head = f"{COST.short} {'+'.join(short(part, cost.mean_ms) for part in cost.parts or (cost.mean_ms,))} "
        return Content.assemble((head, MUTED)) + self._bar(max(self.size.width - len(head), 1))

    def _bar(self, width: int) -> Content:
        cost = self.facts.turn.cost
        parts = cost.parts or (0.0, 0.0, cost.mean_ms)
        total = sum(parts)
        if not total:
            return Content.styled("░" * width, "$foreground 22%")
        ends = [round(width * sum(parts[: index + 1]) / total) for index in range(len(parts))]
        starts = [0, *ends]
        return Content.assemble(
            *(
                (glyph * (end - start), style)
                for (_, glyph, style), start, end in zip(self.PARTS, starts, ends, strict=False)
            )
        )


class ContextGauge(Gauge):
    """Shows how much of the context is used."""

    section = "context"
    compact_width = 24

    def redraw_key(self, facts: GaugeFacts) -> object:
        return facts.turn.context_length, facts.max_context

    def compact(self) -> Content:
        used, most = self.facts.turn.context_length, self.facts.max_context
        if not used:
            return Content.assemble((f"{CONTEXT.name:<8}", "bold"), (NOT_KNOWN, MUTED))
        if not most:  # a server may not tell how much it takes
            return Content.assemble((f"{CONTEXT.name:<8}", "bold"), f"{thousands(used)} tokens")
        share = used / most
        return meter(
            CONTEXT.name, share, f"{thousands(used)}/{thousands(most)}", self.size.width, fullness_style(share)
        )

    def lines(self, height: int) -> list[Content]:
        return [self.compact()]


def fullness_style(share: float) -> str:
    """How a context is drawn that is so full: from ``NEARLY_FULL`` on it is a warning."""
    return "$primary" if share < NEARLY_FULL else "$text-warning" if share < ALMOST_FULL else "$text-error"


def meter(name: str, share: float, words: str, width: int, style: str = "$primary") -> Content:
    """A name, a bar filled by ``share`` in [0, 1], and the figure in words, in the bar's ``style`` if it is another."""
    room = max(width - 8 - len(words) - 1, 0)
    filled = min(round(share * room), room)
    return Content.assemble(
        (f"{name:<8}", "bold"), ("█" * filled, style), ("░" * (room - filled), "$foreground 22%"),
        (f" {words}", "" if style == "$primary" else f"bold {style}"),
    )  # fmt: skip


def short(part: float, whole: float) -> str:
    """A part of ``whole`` milliseconds as a number: ``4.2`` below ten, ``42`` from ten on."""
    return ms_text(part, whole) if part < 10 else f"{part:.0f}"


def thousands(count: int) -> str:
    """``812``, ``2.1k``, ``32k``."""
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 10_000 else f"{count / 1000:.0f}k"
