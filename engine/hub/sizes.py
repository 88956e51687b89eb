"""What the published pairs take on a GPU, by ``sizes.json``: ``python -m engine.lab.bench.sizes`` works it out by the
memory plan. Looking it up needs neither torch nor a checkpoint."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..commands import WeightFormat

FILE = Path(__file__).with_name("sizes.json")
CONTEXTS = (8192, 32_768, 131_072)
"""For which caches are listed, where a model goes so far."""
RESERVE = 1_200_000_000
"""Bytes to leave on a GPU for the libraries, machine code, and what lies idle between tensors."""


@dataclass(frozen=True, slots=True)
class PairSize:
    """Bytes of one pair in bf16, but for its target's weights."""

    target: str
    weights: dict[WeightFormat, int]
    """The target's, in each format as it is made of bf16."""
    drafter: int
    """As trained."""
    draftings: tuple[int, ...]
    """Drafter and 8-bit copies, by the ways to hold them: the largest first."""
    caches: dict[int, int]
    """By those of ``CONTEXTS`` that the target was made for, with what attention needs to work."""
    work: int
    """A piece of a prompt on its way."""
    least_work: int
    """The same where prompts are read in smaller pieces, since nothing would fit otherwise."""

    def cache(self, context: int) -> int:
        """With room for so many tokens, or for as many as there can be."""
        return self.caches[max(each for each in self.caches if each <= context)]

    def without_drafter(self, weights: WeightFormat, context: int) -> int:
        return self.weights[weights] + self.cache(context) + self.work

    def drafting(self, weights: WeightFormat, context: int, memory: int) -> int:
        """The first way to hold the drafter that fits in so much memory; the smallest where none does."""
        room = memory - RESERVE - self.without_drafter(weights, context)
        return next((nbytes for nbytes in self.draftings if nbytes <= room), self.draftings[-1])

    def least(self, weights: WeightFormat, context: int) -> int:
        """The sum with the smallest drafter and the smallest pieces of prompts."""
        return self.without_drafter(weights, context) - self.work + self.least_work + self.draftings[-1]

    def plain(self, context: int) -> int:
        """The sum in bf16 where the host runs the rounds, as on a CPU, whose numbers are twice as large."""
        return self.weights["bf16"] + self.drafter + self.cache(context)

    def fits(self, weights: WeightFormat, context: int, memory: int) -> bool:
        return self.least(weights, context) + RESERVE <= memory

    def best_format(self, context: int, memory: int) -> WeightFormat | None:
        """The one with the most bits that fits; the one with the fewest also where only small pieces let it."""
        room, last = memory - RESERVE - self.draftings[-1], list(self.weights)[-1]
        whole = (weights for weights in self.weights if self.without_drafter(weights, context) <= room)
        return next(whole, last if self.fits(last, context, memory) else None)


@cache
def known_sizes() -> tuple[PairSize, ...]:
    """Of all published pairs that have a drafter, in the order of their families."""
    return tuple(
        PairSize(
            each["target"],
            each["weights"],
            each["drafter"],
            tuple(each["draftings"]),
            {int(context): nbytes for context, nbytes in each["caches"].items()},
            each["work"],
            each["least_work"],
        )
        for each in json.loads(FILE.read_text("utf-8"))
    )


def size_of(target: str) -> PairSize | None:
    """By the target's name on the hub."""
    return next((size for size in known_sizes() if size.target == target), None)
