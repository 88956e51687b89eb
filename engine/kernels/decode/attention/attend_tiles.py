"""How attention of at most 16 rows is cut into programs. The choices change speed; those that are said to decide the
order of sums hold for every width, so that a row's bits don't depend on the other rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ....layer_config import AttentionConfig
from ...toolchain.card import HOPPER, Card
from ...toolchain.jit import MAX_ROWS, cdiv
from .attend_full import MOST_SPLITS


@dataclass(frozen=True, slots=True)
class WindowTiles:
    """Tile sizes of a layer with a window. ``split`` decides the order of sums."""

    split: int
    """Keys in a split; a program holds all of them, and their values, at once."""
    rows: int
    """Grouped query rows of one program."""
    warps: int
    registers: int
    """The most registers of a thread: with 8 warps, 128 let two programs share a multiprocessor."""
    added: int = 1024
    """Rows times channels of splits that a tile's last program loads at a time: of few splits, where there are many
    rows."""

    def shared_memory(self, head_dim: int) -> int:
        """Bytes of a program: keys and values of a split, and queries."""
        return (2 * self.split + self.rows) * head_dim * 2


@dataclass(frozen=True, slots=True)
class FullTiles:
    """Tile sizes of a layer that sees everything. ``split`` and ``keys`` decide the order of sums."""

    split: int
    """Keys in the smallest splits, see ``attend_full.split_size``."""
    keys: int
    """How many keys a program adds in one step; divides ``split``."""
    rows: int
    """Grouped query rows of one program: on Hopper 64, or 128 with 8 warps."""
    values: int
    """Channels of the values that one program mixes; scores are computed anew for each such part."""
    warps: int
    stages: int
    programs: int
    """Programs in the launch, as many as a GPU holds at a time, which share the splits that there are: with a program
    for every possible split most would find nothing to do."""
    alone: bool = False
    """Whether, for a single row, the launch that attends also norms, turns and stores: one launch less. It decides the
    order of the norm's sums. For heads of at most ``MOST_CHANNELS``, and on Hopper alone, since elsewhere its queries
    collide in shared memory."""


AttendTiles = WindowTiles | FullTiles

WINDOW_TILES = {
    64: WindowTiles(128, 16, 8, 128),
    128: WindowTiles(128, 16, 8, 128),
    256: WindowTiles(64, 16, 8, 128, added=4096),
}
"""Tiles by head size; those of 64 are set by analogy."""
FULL_TILES = {
    64: FullTiles(64, 64, 64, 128, 4, 2, 264, alone=True),
    128: FullTiles(64, 64, 64, 128, 4, 2, 264, alone=True),
    256: FullTiles(32, 32, 64, 128, 4, 2, 264, alone=True),
    512: FullTiles(32, 32, 128, 256, 8, 2, 132),
}
"""Tiles by head size; those of 64 are set by analogy."""

MOST_CHANNELS = 256
"""The largest heads that are normed where they are attended: more don't fit into registers."""
SMALL_ROWS = 32
"""Grouped query rows of a program without a window, on cards whose tensor cores take 16: more would only fill
registers."""


def attend_tiles(layer: AttentionConfig, capacity: int, card: Card, max_rows: int = MAX_ROWS) -> AttendTiles:
    """The tiles on a card for a layer whose cache has ``capacity`` rows. The number of rows that run changes no order
    of sums."""
    if layer.window is None:
        full = FULL_TILES[_size(layer.head_dim, FULL_TILES)]
        full = replace(full, alone=full.alone and layer.head_dim <= MOST_CHANNELS)
        if not card.multiplies_from_shared_memory:
            full = replace(full, rows=SMALL_ROWS, warps=4, alone=False)
        elif max_rows == 1:
            full = _few_rows(full, layer.num_heads // layer.num_kv_heads)
        return replace(full, programs=full.programs // HOPPER.multiprocessors * card.multiprocessors)
    tiles = fitting(WINDOW_TILES[_size(layer.head_dim, WINDOW_TILES)], capacity)
    if card.programs_of(tiles.shared_memory(layer.head_dim)) < 2:
        tiles = replace(tiles, registers=255)  # only one program fits, which may have all registers
    return _four_warps(tiles) if max_rows == 1 else tiles


def _few_rows(full: FullTiles, packed: int) -> FullTiles:
    """For ``packed`` grouped rows: tiles of 64 rows instead of 128 where all fit. The bits are the same, since a row's
    sums stay in its warp. More than 64 rows would be two tiles that read the keys twice."""
    return replace(full, rows=64, warps=4) if packed <= 64 < full.rows else full


def _four_warps(tiles: WindowTiles) -> WindowTiles:
    """For one row: four warps instead of eight, which wait for each other less, where both add alike. Up to 64 keys
    eight warps only compute scores twice; with 128 each has its own, and sums have another order."""
    return replace(tiles, warps=4, registers=255) if tiles.split <= 64 else tiles


def fitting(tiles: WindowTiles, capacity: int) -> WindowTiles:
    """The same tiles, with splits that go round a ring of ``capacity`` rows at most once."""
    while tiles.split > max(capacity, 16):
        tiles = replace(tiles, split=tiles.split // 2)
    return tiles


def _size(head_dim: int, by_size: Mapping[int, object]) -> int:
    """The smallest of the sizes that fits such a head, or the largest."""
    return next((size for size in by_size if head_dim <= size), max(by_size))


def num_splits(tiles: AttendTiles, capacity: int, window: int | None) -> int:
    """How many splits there can be at a time: those of the keys that 16 neighbouring queries see, or those of one
    row."""
    if window is not None:
        return cdiv(window - 1 + MAX_ROWS, tiles.split) + 1
    return min(int(MOST_SPLITS), cdiv(capacity, tiles.split))
