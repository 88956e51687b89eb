"""Attention of at most 16 rows over a layer's cache, with the cursor on the device.

Keys are taken in splits that start at absolute positions and are added up in their order, so that a row's bits depend
neither on the rows beside it nor on how its keys came into the cache. ``attention.py`` defines the operation,
``attend_splits.py`` holds the kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import e, log2

import torch
from torch import Tensor

from ..config import AttentionConfig
from .attend_splits import OCTAVE, _attend_split, _combine_splits
from .attention import reference_attention
from .jit import MAX_ROWS, cdiv

LOG2_E = log2(e)


@dataclass(frozen=True, slots=True)
class AttendTiles:
    """Tile sizes of ``attend_rows``. But for ``rows`` they decide the order of sums."""

    split: int
    """Keys of a split; without a window, of the first ones (see ``split_start``)."""
    keys: int
    """Keys of one step; divides ``split``."""
    rows: int
    """Grouped query rows of one program, at most; a power of two up to 32."""
    warps: int
    stages: int


WINDOWED_TILES = {128: AttendTiles(128, 128, 32, 4, 2), 256: AttendTiles(64, 64, 16, 4, 2)}
"""By head size, for layers with a window: a program holds all keys and values of its split at once."""
FULL_TILES = {
    128: AttendTiles(64, 64, 32, 4, 2),
    256: AttendTiles(64, 64, 32, 8, 2),
    512: AttendTiles(32, 32, 32, 8, 2),
}
"""By head size, for layers that see everything: steps are loaded ahead."""

COMBINED_SPLITS, COMBINED_LANES = 64, 64
"""Splits and channels that a program of ``_combine_splits`` adds in one step."""
FULL_PROGRAMS = {128: 512, 256: 256, 512: 256}
"""Programs of a layer without a window, by head size: as many as a GPU holds at a time. A program for every split of a
large cache would be many that only find out that there is nothing to do."""
FEWEST_ROWS = 16
"""Of a program's tile. Tensor cores take 8, but a tile so narrow saves nothing that counts."""


def attend_tiles(layer: AttentionConfig, capacity: int) -> AttendTiles:
    """Tiles for a layer whose cache has ``capacity`` rows; they don't depend on how many rows run."""
    by_size = FULL_TILES if layer.window is None else WINDOWED_TILES
    return fitting(by_size[_size(layer.head_dim, by_size)], layer, capacity)


def fitting(tiles: AttendTiles, layer: AttentionConfig, capacity: int) -> AttendTiles:
    """The same tiles, with splits that go round a ring of ``capacity`` rows at most once."""
    while layer.window is not None and tiles.split > max(capacity, 16):
        tiles = replace(tiles, split=tiles.split // 2, keys=min(tiles.keys, tiles.split // 2))
    return tiles


def _size(head_dim: int, by_size: Mapping[int, object]) -> int:
    """The smallest of the sizes that such a head fits, or the largest."""
    return next((size for size in by_size if head_dim <= size), max(by_size))


class AttendScratch:
    """Where the programs of ``attend_rows`` leave their parts. Layers run one after the other, so all share it."""

    def __init__(
        self,
        layers: Sequence[AttentionConfig],
        capacities: Sequence[int],
        device: torch.device,
        tiles: AttendTiles | None = None,
    ):
        """Large enough for the tiles in use, or for other ``tiles`` that someone measures."""
        rows = values = heads = 1
        for layer, capacity in zip(layers, capacities, strict=True):
            chosen = tiles or attend_tiles(layer, capacity)
            count = num_splits(chosen, capacity, layer.window) * MAX_ROWS * layer.num_heads
            rows, values, heads = max(rows, count), max(values, count * layer.head_dim), max(heads, layer.num_heads)
        self.highest = torch.empty(rows, dtype=torch.float32, device=device)
        self.total = torch.empty(rows, dtype=torch.float32, device=device)
        self.mixed = torch.empty(values, dtype=torch.float32, device=device)
        self.arrivals = torch.zeros(heads * MAX_ROWS, dtype=torch.int32, device=device)
        """Finished programs of each tile; 0 between launches."""

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in (self.highest, self.total, self.mixed, self.arrivals))


def split_start(split: int, size: int) -> int:
    """First position of a split of a layer without a window, whose first splits have ``size`` keys.

    Splits grow with their position, so that a short context has many and a long one not too many: 64 equal ones, then
    32 of twice the size, 32 of four times the size, and so on: none is longer than a 32nd of what lies before it.
    """
    doublings = max(split // OCTAVE - 1, 0)
    return ((split - OCTAVE * doublings) * size) << doublings


def num_splits(tiles: AttendTiles, capacity: int, window: int | None) -> int:
    """How many splits the keys of 16 neighbouring queries can touch."""
    if window is not None:
        return cdiv(window - 1 + MAX_ROWS, tiles.split) + 1
    return next(split for split in range(1, capacity + 1) if split_start(split, tiles.split) >= capacity)


def tile_rows(tiles: AttendTiles, max_rows: int, group: int) -> int:
    """Grouped rows of one program where at most ``max_rows`` rows run.

    Rows are columns of the products, so that no sum depends on it.
    """
    return min(tiles.rows, max(FEWEST_ROWS, power_of_two(max_rows * group)))


def power_of_two(count: int) -> int:
    """The smallest that is not below ``count``."""
    return 1 << (count - 1).bit_length()


def attend_rows(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cursor: Tensor,
    rows: Tensor,
    layer: AttentionConfig,
    out: Tensor,
    scratch: AttendScratch,
    tiles: AttendTiles | None = None,
    max_rows: int = MAX_ROWS,
) -> None:
    """Attends up to 16 rows over a layer's cache, their own keys and values already stored in it.

    ``q`` [16, heads, head_dim] stands at cursor .. cursor + rows - 1; ``k``, ``v`` [kv_heads, capacity, head_dim], a
    ring when the layer has a window; ``cursor``, ``rows`` int32 [1] on the device. ``out`` [16, heads * head_dim];
    rows from ``rows`` on are left as they are, and ``max_rows`` bounds them where a launch is recorded. Defined by
    ``attend_rows_reference``; a causal row's result has the same bits whatever stands behind it and however its keys
    came into the cache.
    """
    kv_heads, capacity, head_dim = k.shape
    tiles = tiles or attend_tiles(layer, capacity)
    group = layer.num_heads // kv_heads
    splits = num_splits(tiles, capacity, layer.window)
    assert scratch.mixed.numel() >= splits * MAX_ROWS * layer.num_heads * head_dim, "scratch of another layer"
    tile = tile_rows(tiles, max_rows, group)
    row_tiles = cdiv(max_rows * group, tile)
    programs = splits
    if layer.window is None:
        programs = min(splits, max(FULL_PROGRAMS[_size(head_dim, FULL_PROGRAMS)] // (kv_heads * row_tiles), 1))
    parts = (scratch.highest, scratch.total, scratch.mixed)
    shared = {"GROUP": group, "HEAD_DIM": head_dim, "CAUSAL": layer.causal}
    shared |= {"SPLIT": tiles.split, "GROUP_ROWS": MAX_ROWS * group}
    _attend_split[(kv_heads, programs, row_tiles)](
        q,
        k,
        v,
        *parts,
        scratch.arrivals,
        out,
        cursor,
        rows,
        capacity,
        splits,
        layer.scale * LOG2_E,
        WINDOW=layer.window or 0,
        KEYS=tiles.keys,
        TILE=tile,
        num_warps=tiles.warps,
        num_stages=tiles.stages,
        **shared,
    )
    if layer.window is None:
        lanes = min(COMBINED_LANES, head_dim)
        _combine_splits[(max_rows, layer.num_heads, head_dim // lanes)](
            *parts, out, cursor, rows, splits, STEP=COMBINED_SPLITS, LANES=lanes, num_warps=4, **shared
        )


def attend_rows_reference(
    q: Tensor, k: Tensor, v: Tensor, cursor: Tensor, rows: Tensor, layer: AttentionConfig, out: Tensor
) -> None:
    """What ``attend_rows`` computes, in PyTorch: ``reference_attention`` over the keys in order."""
    capacity = k.shape[1]
    start, count = int(cursor), int(rows)
    first = 0 if layer.window is None else max(0, start - layer.window + 1)
    stored = torch.arange(first, start + count, device=k.device) % capacity
    out[:count] = reference_attention(
        q[:count], k[:, stored], v[:, stored], causal=layer.causal, window=layer.window, scale=layer.scale
    )
