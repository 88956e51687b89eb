"""What passes offer whoever times tiles: how to launch each of their products with other tiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ...toolchain.card import Card
from .tiles import Tiles

AllTiles = TypeVar("AllTiles")
Launch = Callable[[], None]


@dataclass(frozen=True, slots=True)
class TileTrial(Generic[AllTiles]):
    """How to try other tiles for one product of a pass."""

    launches: Callable[[AllTiles], list[Launch]]
    """The launches that the tiles decide, one for each layer, with the weights as they are loaded."""
    weight_tiles: int = 1
    """How many tiles of a weight a program reads in each step."""
    bits: int = 16
    """Bits that a number of the weight takes, its share of a scale included."""
    packed: bool = False
    """Whether tiles of the weight and of its rows lie in registers, so that no shared memory bounds them. Those of a
    drafter in 8 bits don't."""
    splits: bool = False
    """Whether several programs may share a column tile. Another number of them needs nothing else: sums are added in
    the launch behind."""
    depth: bool = True
    """Whether steps may have another depth."""
    warps: bool = True
    """Whether a program may have more or fewer warps."""
    shares: bool = False
    """Whether programs share the tiles of experts."""

    def fits(self, tiles: Tiles, card: Card) -> bool:
        """Whether a multiprocessor has the shared memory for a program with these tiles."""
        return self.packed or card.programs_of(tiles.shared_memory(self.weight_tiles, self.bits)) > 0


TileTrials = dict[str, TileTrial[AllTiles]]
"""The products of a pass by field of the tiles, those first that read most."""
