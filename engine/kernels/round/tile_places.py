"""Computes on the device where the tiles of 16 rows of a wide pass stand."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import MAX_ROWS, tl
from .state import AT_CURSOR, AT_PENDING, AT_WIDTH, RoundState

APART = 4
"""How many numbers a tile's entry is from the next one's: each is at a multiple of 16 bytes, as kernels expect."""


@dataclass(frozen=True, slots=True)
class TilePlaces:
    """Position and row count of each tile, int32 [1] each."""

    numbers: Tensor

    @classmethod
    def allocate(cls, num_tiles: int, device: torch.device) -> TilePlaces:
        return cls(torch.zeros(2, num_tiles, APART, dtype=torch.int32, device=device))

    @property
    def cursors(self) -> list[Tensor]:
        """The position of each tile's first row."""
        return [entry[:1] for entry in self.numbers[0]]

    @property
    def rows(self) -> list[Tensor]:
        """How many of each tile's 16 rows count."""
        return [entry[:1] for entry in self.numbers[1]]


def place_tiles(cursor: Tensor, rows: Tensor, places: TilePlaces) -> None:
    """Fills the places for a pass of ``rows`` rows from ``cursor`` on, int32 [1] each."""
    num_tiles = places.numbers.shape[1]
    _place_tiles[(num_tiles,)](cursor, rows, places.numbers, TILES=num_tiles, APART=APART, num_warps=1)


@early_kernel
def _place_tiles(
    cursor: tl.tensor, rows: tl.tensor, places: tl.tensor, TILES: tl.constexpr, APART: tl.constexpr
) -> None:
    """The kernel of ``place_tiles``: a program for each tile."""
    wait_for_inputs()
    let_next_start()
    first = tl.program_id(0) * 16
    at = places + tl.program_id(0) * APART
    start = tl.load(cursor) + first
    count = tl.minimum(tl.maximum(tl.load(rows) - first, 0), 16)
    tl.store(at, start)
    tl.store(at + TILES * APART, count)


def place_accepted(state: RoundState, places: TilePlaces) -> None:
    """Fills the places for the rows that a wide round has committed: they enter the drafter's context and are no longer
    pending. After the end there are none."""
    num_tiles = places.numbers.shape[1]
    _place_accepted[(1,)](state.numbers, places.numbers, TILES=num_tiles, APART=APART, num_warps=1)


@early_kernel
def _place_accepted(state: tl.tensor, places: tl.tensor, TILES: tl.constexpr, APART: tl.constexpr) -> None:
    wait_for_inputs()
    let_next_start()
    tile = tl.arange(0, TILES)
    live = tl.load(state + AT_WIDTH) > 0
    waiting = tl.load(state + AT_PENDING)
    end = tl.load(state + AT_CURSOR)
    first = tile * 16
    tl.store(places + tile * APART, end - waiting + first)
    count = tl.minimum(tl.maximum(waiting - first, 0), 16)
    tl.store(places + (TILES + tile) * APART, tl.where(live, count, 0))
    tl.store(state + AT_PENDING, tl.where(live, 0, waiting))


assert MAX_ROWS == 16, "the kernels above are written for tiles of 16 rows"
