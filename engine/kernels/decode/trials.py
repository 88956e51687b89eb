"""What passes tell whoever times tiles: how to launch each of their products with others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..toolchain.card import Card
from .tiles import Tiles

AllTiles = TypeVar("AllTiles")
Launch = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Trial(Generic[AllTiles]):
    """One choice among the tiles of a pass."""

    launches: Callable[[AllTiles], list[Launch]]
    """The launches that it decides, one for each layer, with weights as they are loaded."""
    weight_tiles: int = 1
    """Tiles of a weight that a program reads in each step."""
    bits: int = 16
    """Of a number of the weight, all counted."""
    packed: bool = False
    """Whether tiles of the weight and of its rows lie in registers: then no shared memory bounds them. A drafter's in 8
    bits don't."""
    splits: bool = False
    """Whether several programs may share a column tile. Nothing else is needed for another number of them: sums are
    added in the launch behind."""
    depth: bool = True
    """Whether steps may have another depth."""
    warps: bool = True
    """Whether more or fewer warps may share a program."""
    shares: bool = False
    """Whether programs share the tiles of experts."""

    def fits(self, tiles: Tiles, card: Card) -> bool:
        """Whether a multiprocessor has the shared memory for a program with these tiles."""
        return self.packed or card.programs_of(tiles.shared_memory(self.weight_tiles, self.bits)) > 0


Trials = dict[str, Trial[AllTiles]]
"""By the field of the choice, those first that read most."""
