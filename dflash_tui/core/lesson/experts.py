"""The picture of a mixture of experts: which ones a pass reads as its tokens become more."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from engine.sampling.philox import uniform

from .drawn import NAME_WIDTH, Line, said

PER_ROW = 32
WANTED, NEWEST, RESTING = "■", "▣", "·"


@dataclass(frozen=True)
class ExpertsPicture:
    """A picture of a layer of ``count`` experts, of which each token goes through ``per_token``, and of a pass that
    checks up to ``tokens`` tokens."""

    count: int
    per_token: int
    tokens: int

    @cached_property
    def choices(self) -> list[set[int]]:
        """The experts of each token, chosen by lot: tokens that choose independently."""
        drawn: list[set[int]] = []
        for token in range(self.tokens):
            lots = sorted(range(self.count), key=lambda expert: uniform(token, expert))
            drawn.append(set(lots[: self.per_token]))
        return drawn

    def lines(self, moment: int, width: int) -> list[Line]:
        """The picture with ``moment + 1`` tokens in the pass, in lines of at most ``width`` cells."""
        newest = self.choices[moment]
        before = set[int]().union(*self.choices[:moment])
        gap = " " if 2 * min(PER_ROW, self.count) <= width - NAME_WIDTH else ""
        rows: list[Line] = []
        for first in range(0, self.count, PER_ROW):
            cells: Line = tuple(
                (NEWEST + gap, "new") if expert in newest
                else (WANTED + gap, "memory") if expert in before
                else (RESTING + gap, "faint")
                for expert in range(first, min(first + PER_ROW, self.count))
            )  # fmt: skip
            rows.append(((f"{'' if first else 'experts':<{NAME_WIDTH}}", "name"), *cells))
        read = len(before | newest)
        words = f"One token wants {read} of {self.count} experts ({NEWEST}), by lot: no others are read."
        if moment:
            words = (
                f"{moment + 1} tokens want {read} of {self.count} experts, by lot: {read / self.per_token:.1f} times "
                f"the reading of one. The newest ({NEWEST}) adds {len(newest - before)}."
            )
        return [*rows, (), *said(words, width)]
