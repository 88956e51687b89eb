"""Suggests the published pair that this machine's GPU could run. Asks the driver's own tool, so that torch need not be
imported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..commands import WeightFormat
from .gpus import first_gpu

if TYPE_CHECKING:
    from ..hub.sizes import PairSize
    from ..models.family import KnownPair

CONTEXT = 32_768
"""Tokens of context for which there must be room."""
PREFERRED = ("google/gemma-4-26B-A4B-it", "google/gemma-4-12B-it")
"""Targets to suggest; the first that fits is. A mixture of experts reads only a fraction of its weights for each token,
so the larger one is the faster."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    pair: KnownPair
    size: PairSize
    weights: WeightFormat
    """The format with the most bits that fits."""
    gpu: str
    """The GPU's name."""
    memory: int
    """The GPU's memory in bytes."""

    @property
    def to_fetch(self) -> int:
        """Bytes to download: those of the copy in this format, where there is one."""
        from ..hub.pairs import copy_in

        published = self.weights if copy_in(self.weights, self.pair.target) else "bf16"
        return self.size.weights[published] + self.size.drafter


def suggest_pair() -> Suggestion | None:
    """The pair to offer on the first GPU; None without one, or when none of the pairs fits on it."""
    gpu = first_gpu()
    if gpu is None:
        return None
    # Imported here: the configs of all families are half of what a chat would import before its first frame.
    from ..hub.pairs import KNOWN_PAIRS
    from ..hub.sizes import size_of

    pairs = {pair.target: pair for pair in KNOWN_PAIRS}
    for target in PREFERRED:
        size = size_of(target)
        weights = None if size is None else size.best_format(CONTEXT, gpu.memory)
        if size is not None and weights is not None:
            return Suggestion(pairs[target], size, weights, gpu.name, gpu.memory)
    return None
