"""What the published pairs take on a GPU, from ``sizes.json``, which ``python -m engine.lab.bench.sizes`` writes by the
memory plan. Reading it needs neither torch nor a checkpoint."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..commands import WeightFormat

FILE = Path(__file__).with_name("sizes.json")
CONTEXTS = (8192, 32_768, 131_072)
"""Context lengths for which caches are listed, where a model goes so far."""
RESERVE = 1_200_000_000
"""Bytes to leave on a GPU for the libraries, machine code, and gaps between tensors."""


@dataclass(frozen=True, slots=True)
class PairSize:
    """Bytes of the parts of one pair in bf16, except its target's weights, which are listed by format."""

    target: str
    weights: dict[WeightFormat, int]
    """Bytes of the target's weights in each format that is made of bf16."""
    token: dict[WeightFormat, int]
    """Bytes of these that a pass over one row reads: what a token takes without speculation, at the least."""
    drafter: int
    """Bytes of the drafter as it was trained."""
    draftings: tuple[int, ...]
    """Bytes of drafter and 8-bit copies, for each way to hold them, the largest first."""
    caches: dict[int, int]
    """Bytes of caches and attention's scratch memory, for each of ``CONTEXTS`` that the target was made for."""
    work: int
    """Bytes of the activations of a piece of a prompt."""
    least_work: int
    """Bytes of these where prompts are read in smaller pieces, since nothing would fit otherwise."""
    embedding: int
    """Bytes of the target's embedding that may lie in the machine's memory, for the same reason; 0 where it is the
    head, too."""

    def cache(self, context: int) -> int:
        """Bytes of caches with room for ``context`` tokens, or for as many as there can be."""
        return self.caches[max(each for each in self.caches if each <= context)]

    def without_drafter(self, weights: WeightFormat, context: int) -> int:
        return self.weights[weights] + self.cache(context) + self.work

    def drafting(self, weights: WeightFormat, context: int, memory: int) -> int:
        """Bytes of the first way to hold the drafter that fits in ``memory``; those of the smallest where none does."""
        room = memory - RESERVE - self.without_drafter(weights, context)
        return next((nbytes for nbytes in self.draftings if nbytes <= room), self.draftings[-1])

    def least(self, weights: WeightFormat, context: int) -> int:
        """Bytes of the pair at its smallest: with the smallest drafter and pieces of prompts, and the embedding in the
        machine's memory."""
        given_up = self.work - self.least_work + self.embedding
        return max(
            self.without_drafter(weights, context) - given_up + self.draftings[-1],
            self.weights[weights],
        )

    def plain(self, context: int) -> int:
        """Bytes of the pair in bf16 where the host runs the rounds; on a CPU numbers are twice as large."""
        return self.weights["bf16"] + self.drafter + self.cache(context)

    def fits(self, weights: WeightFormat, context: int, memory: int) -> bool:
        return self.least(weights, context) + RESERVE <= memory

    def best_format(self, context: int, memory: int) -> WeightFormat | None:
        """The format with the most bits that fits, the one with the fewest also where only small pieces of prompts
        let it; None where none does."""
        room, last = memory - RESERVE - self.draftings[-1], list(self.weights)[-1]
        whole = (weights for weights in self.weights if self.without_drafter(weights, context) <= room)
        return next(whole, last if self.fits(last, context, memory) else None)


@cache
def known_sizes() -> tuple[PairSize, ...]:
    """The sizes of all published pairs that have a drafter, in the order of their families."""
    return tuple(
        PairSize(
            each["target"],
            each["weights"],
            each["token"],
            each["drafter"],
            tuple(each["draftings"]),
            {int(context): nbytes for context, nbytes in each["caches"].items()},
            each["work"],
            each["least_work"],
            each["embedding"],
        )
        for each in json.loads(FILE.read_text("utf-8"))
    )


def size_of(target: str) -> PairSize | None:
    """The size of the pair with this target, by its name on the hub; None where it isn't listed."""
    return next((size for size in known_sizes() if size.target == target), None)
