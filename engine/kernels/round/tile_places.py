"""Where the tiles of 16 rows of a wide pass stand, on the device."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import MAX_ROWS, tl

APART = 4
"""Numbers between one tile's and the next one's: each at 16 bytes, as kernels expect."""


@dataclass(frozen=True, slots=True)
class TilePlaces:
    """By tile, int32 [1] each."""

    numbers: Tensor

    @classmethod
    def allocate(cls, num_tiles: int, device: torch.device) -> TilePlaces:
        return cls(torch.zeros(2, num_tiles, APART, dtype=torch.int32, device=device))

    @property
    def cursors(self) -> list[Tensor]:
        """The position of each tile's first row."""
        return [place[:1] for place in self.numbers[0]]

    @property
    def rows(self) -> list[Tensor]:
        """How many of its 16 rows count."""
        return [place[:1] for place in self.numbers[1]]


def place_tiles(cursor: Tensor, rows: Tensor, places: TilePlaces) -> None:
    """For so many rows from ``cursor`` on, int32 [1] each."""
    num_tiles = places.numbers.shape[1]
    _place_tiles[(num_tiles,)](cursor, rows, places.numbers, TILES=num_tiles, APART=APART, num_warps=1)


@early_kernel
def _place_tiles(
    cursor: tl.tensor, rows: tl.tensor, places: tl.tensor, TILES: tl.constexpr, APART: tl.constexpr
) -> None:
    """Program (tile)."""
    wait_for_inputs()
    let_next_start()
    first = tl.program_id(0) * 16
    at = places + tl.program_id(0) * APART
    start = tl.load(cursor) + first
    count = tl.minimum(tl.maximum(tl.load(rows) - first, 0), 16)
    tl.store(at, start)
    tl.store(at + TILES * APART, count)


assert MAX_ROWS == 16, "the kernel above is written for tiles of 16 rows"
