"""Attention of at most 16 rows over a layer's cache, from the projection to the mix, with the cursor on the device.
Splits of keys start at absolute positions and are added in order, so a row's bits depend neither on other rows nor on
how keys were cached. Window layers launch ``attend_window.py``, or ``attend_one_row.py`` with the same bits; others
``rope.py`` and ``attend_full.py``, three launches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import e, log2

import torch
from torch import Tensor

from ...layer_config import AttentionConfig
from ..reference.attention import reference_attention
from ..round.tree_rows import TreeRows
from ..shared.heads import HeadNorms
from ..toolchain.card import HOPPER, Card, card_of
from ..toolchain.jit import MAX_ROWS, cdiv, power_of_two
from .add_splits import ALL_SPLITS
from .attend_full import MOST_SPLITS, _attend_full, _combine_splits
from .attend_one_row import _attend_one_row
from .attend_window import _attend_window
from .branches import most_branches
from .rope import norm_rope_store, norm_rope_store_reference
from .tiles import RowTiles

LOG2_E = log2(e)


@dataclass(frozen=True, slots=True)
class WindowTiles:
    """Tile sizes of a layer with a window. ``split`` decides the order of sums."""

    split: int
    """Keys of a split; a program holds all of them, and their values, at once."""
    rows: int
    """Grouped query rows of one program."""
    warps: int
    registers: int
    """Of a thread, at most: with 8 warps, 128 let two programs share a multiprocessor."""
    added: int = 1024
    """Rows times channels of a split that the last program of a tile has on their way at a time, of few splits if of
    many rows."""

    def shared_memory(self, head_dim: int) -> int:
        """Bytes of a program: keys and values of a split, and queries."""
        return (2 * self.split + self.rows) * head_dim * 2


@dataclass(frozen=True, slots=True)
class FullTiles:
    """Tile sizes of a layer that sees everything. ``split`` and ``keys`` decide the order of sums."""

    split: int
    """Keys of the smallest splits, see ``split_size``."""
    keys: int
    """Keys of one step; divides ``split``."""
    rows: int
    """Grouped query rows of one program: on Hopper 64, or 128 with 8 warps."""
    values: int
    """Channels of the values that one program mixes; the scores are computed anew for each such part."""
    warps: int
    stages: int
    programs: int
    """As many as a GPU holds at a time: one for every split would mostly find nothing to do."""


AttendTiles = WindowTiles | FullTiles

WINDOW_TILES = {
    64: WindowTiles(128, 16, 8, 128),
    128: WindowTiles(128, 16, 8, 128),
    256: WindowTiles(64, 16, 8, 128, added=4096),
}
"""By head size; those of 64 by analogy."""
FULL_TILES = {
    64: FullTiles(64, 64, 64, 128, 4, 2, 264),
    128: FullTiles(64, 64, 64, 128, 4, 2, 264),
    256: FullTiles(32, 32, 64, 128, 4, 2, 264),
    512: FullTiles(32, 32, 128, 256, 8, 2, 132),
}
"""Likewise."""

COMBINED_LANES = 64
"""Channels that a program of ``_combine_splits`` adds."""


SMALL_ROWS = 32
"""Grouped query rows of a program without a window where a tensor core takes 16: more would only fill registers."""


def attend_tiles(layer: AttentionConfig, capacity: int, card: Card, max_rows: int = MAX_ROWS) -> AttendTiles:
    """Tiles on a card for a layer whose cache has ``capacity`` rows. How many rows run changes no order of sums."""
    if layer.window is None:
        full = FULL_TILES[_size(layer.head_dim, FULL_TILES)]
        if not card.multiplies_from_shared_memory:
            full = replace(full, rows=SMALL_ROWS, warps=4)
        elif max_rows == 1:
            full = _few_rows(full, layer.num_heads // layer.num_kv_heads)
        return replace(full, programs=full.programs // HOPPER.multiprocessors * card.multiprocessors)
    tiles = fitting(WINDOW_TILES[_size(layer.head_dim, WINDOW_TILES)], capacity)
    if card.programs_of(tiles.shared_memory(layer.head_dim)) < 2:
        tiles = replace(tiles, registers=255)  # of the one program that fits
    return _four_warps(tiles) if max_rows == 1 else tiles


def tiles_of_source(layer: AttentionConfig) -> AttendTiles:
    """Before they are made to fit a card and a cache."""
    by_size: Mapping[int, AttendTiles] = FULL_TILES if layer.window is None else WINDOW_TILES
    return by_size[_size(layer.head_dim, by_size)]


def use_tiles(head_dim: int, tiles: AttendTiles) -> None:
    """For whoever measures: these in place of the source's, from now on, for heads of this size."""
    if isinstance(tiles, WindowTiles):
        WINDOW_TILES[_size(head_dim, WINDOW_TILES)] = tiles
    else:
        FULL_TILES[_size(head_dim, FULL_TILES)] = tiles


def _few_rows(full: FullTiles, packed: int) -> FullTiles:
    """For ``packed`` rows, tiles of 64 instead of 128 where all fit. The bits are the same: a row's sums stay in its
    warp. More than 64 rows would be two tiles that read the keys twice."""
    return replace(full, rows=64, warps=4) if packed <= 64 < full.rows else full


def _four_warps(tiles: WindowTiles) -> WindowTiles:
    """For one row, four warps instead of eight, which wait for each other less, where they add alike: up to 64 keys
    eight warps only compute scores twice; with 128 each has its own, and sums another order."""
    return replace(tiles, warps=4, registers=255) if tiles.split <= 64 else tiles


def fitting(tiles: WindowTiles, capacity: int) -> WindowTiles:
    """The same tiles, with splits that go round a ring of ``capacity`` rows at most once."""
    while tiles.split > max(capacity, 16):
        tiles = replace(tiles, split=tiles.split // 2)
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
            chosen = tiles or attend_tiles(layer, capacity, card_of(device))
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


def split_size(last_key: int, smallest: int) -> int:
    """Keys of a split, without a window, for a row that sees keys up to ``last_key``: ``smallest``, doubled until
    MOST_SPLITS hold them all. It depends on the row's position alone."""
    while smallest * int(MOST_SPLITS) <= last_key:
        smallest *= 2
    return smallest


def num_splits(tiles: AttendTiles, capacity: int, window: int | None) -> int:
    """How many splits there can be at a time: of the keys of 16 neighbouring queries, or of a row's."""
    if window is not None:
        return cdiv(window - 1 + MAX_ROWS, tiles.split) + 1
    return min(int(MOST_SPLITS), cdiv(capacity, tiles.split))


def attend_rows(
    projected: Tensor,
    norms: HeadNorms,
    frequencies: Tensor,
    k: Tensor,
    v: Tensor,
    cursor: Tensor,
    rows: Tensor,
    layer: AttentionConfig,
    out: Tensor,
    scratch: AttendScratch,
    tiles: AttendTiles | None = None,
    max_rows: int = MAX_ROWS,
    tree: TreeRows | None = None,
    sinks: Tensor | None = None,
) -> None:
    """Norms and turns up to 16 rows' heads, stores keys and values, and attends; see ``attend_rows_reference``.
    ``projected`` [16, >= width]: [queries | keys | values] side by side (no values with ``value_is_key``); queries may
    change. ``frequencies`` fp32 [head_dim / 2]. Rows stand at cursor .. cursor + rows - 1; ``k``, ``v`` [kv_heads,
    capacity, head_dim], a ring with a window; ``cursor``, ``rows`` int32 [1] on the device. The launch just before may
    not write these, a tree's tensors, or keys and values before the cursor. ``out`` [16, heads * head_dim] keeps rows
    from ``rows`` on; ``max_rows`` bounds them when recorded. With a ``tree`` row r stands at cursor + its depth in slot
    cursor + r, sees its ancestors behind the cursor, and has the bits of a chain of these. One row is no tree.
    ``sinks`` [heads], any float dtype, or None: as in ``reference/attention.py``."""
    assert tree is None or (layer.causal and max_rows > 1)
    tiles = tiles or attend_tiles(layer, k.shape[1], card_of(k.device), max_rows)
    assert tree is None or tiles.split >= MAX_ROWS, "rows of a tree reach two splits at most"
    splits = num_splits(tiles, k.shape[1], layer.window)
    assert scratch.mixed.numel() >= splits * MAX_ROWS * layer.num_heads * layer.head_dim, "scratch of another layer"
    if isinstance(tiles, WindowTiles):
        _attend_in_window(
            projected, norms, frequencies, sinks, k, v, cursor, rows, layer, out, scratch, tiles, max_rows, tree
        )
        return
    norm_rope_store(
        projected, norms, frequencies, k, v, cursor, rows, layer.num_heads,
        value_is_key=layer.value_is_key, max_rows=max_rows, tree=tree,
    )  # fmt: skip
    _attend_to_all(projected, k, v, sinks, cursor, rows, layer, out, scratch, tiles, max_rows, tree)


def _attend_in_window(
    projected: Tensor,
    norms: HeadNorms,
    frequencies: Tensor,
    sinks: Tensor | None,
    k: Tensor,
    v: Tensor,
    cursor: Tensor,
    rows: Tensor,
    layer: AttentionConfig,
    out: Tensor,
    scratch: AttendScratch,
    tiles: WindowTiles,
    max_rows: int,
    tree: TreeRows | None,
) -> None:
    kv_heads, capacity, head_dim = k.shape
    group, splits = layer.num_heads // kv_heads, num_splits(tiles, capacity, layer.window)
    arguments = (
        projected,
        norms.q,
        norms.k,
        frequencies,
        sinks,
        k,
        v,
        scratch.highest,
        scratch.total,
        scratch.mixed,
        scratch.arrivals,
        out,
        cursor,
        rows,
        capacity,
        splits,
        norms.eps,
        layer.scale * LOG2_E,
    )
    options = {
        "GROUP": group,
        "HEAD_DIM": head_dim,
        "VALUE_IS_KEY": layer.value_is_key,
        "ROUNDED_FIRST": norms.rounded_first,
        "NORM_VALUES": norms.norm_values,
        "WINDOW": layer.window,
        "CAUSAL": layer.causal,
        "SPLIT": tiles.split,
        "TILE": tiles.rows,
        "GROUP_ROWS": MAX_ROWS * group,
        "num_warps": tiles.warps,
        "maxnreg": tiles.registers,
    }
    added = max(1, tiles.added // head_dim)
    # A warp to a head, of which there are the group's queries, a key and a value.
    heads = max(power_of_two(group + 2), tiles.warps)
    assert layer.window is not None
    splits_of_row = cdiv(layer.window - 1, tiles.split) + 1
    if max_rows == 1 and heads <= tiles.rows and splits_of_row <= int(ALL_SPLITS):
        added = min(power_of_two(group), added)
        _attend_one_row[(kv_heads, splits)](*arguments, HEADS=heads, ADDED=added, **options)
        return
    # Rows reach two splits with keys from the cursor on, at most.
    programs = splits if tree is None else splits + 2 * most_branches(tiles.rows, group)
    grid = (kv_heads, programs, cdiv(max_rows * group, tiles.rows))
    _attend_window[grid](*arguments, projected.stride(0), *_tensors(tree), ADDED=min(tiles.rows, added), **options)


def _tensors(tree: TreeRows | None) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    return (None, None, None) if tree is None else (tree.depths, tree.paths, tree.trunk)


def attend_one_query(
    queries: Tensor,
    k: Tensor,
    v: Tensor,
    last: Tensor,
    rows: Tensor,
    layer: AttentionConfig,
    out: Tensor,
    scratch: AttendScratch,
) -> None:
    """Attends the first row of ``queries`` [16, heads * head_dim], normed and turned, over positions up to ``last``
    inclusive: keys and values [kv_heads, capacity, head_dim] that lie in order, stored before. ``last``, ``rows`` int32
    [1] on the device; ``out`` [16, heads * head_dim]."""
    tiles = attend_tiles(replace(layer, window=None), k.shape[1], card_of(k.device), max_rows=1)
    assert isinstance(tiles, FullTiles)
    _attend_to_all(queries, k, v, None, last, rows, layer, out, scratch, tiles, 1, None)


def _attend_to_all(
    projected: Tensor,
    k: Tensor,
    v: Tensor,
    sinks: Tensor | None,
    cursor: Tensor,
    rows: Tensor,
    layer: AttentionConfig,
    out: Tensor,
    scratch: AttendScratch,
    tiles: FullTiles,
    max_rows: int,
    tree: TreeRows | None,
) -> None:
    """For queries that are normed and turned, keys and values that are stored."""
    kv_heads, capacity, head_dim = k.shape
    group, splits = layer.num_heads // kv_heads, num_splits(tiles, capacity, None)
    values, lanes = min(tiles.values, head_dim), min(COMBINED_LANES, head_dim)
    tiles_and_parts = cdiv(max_rows * group, tiles.rows) * (head_dim // values)
    programs = min(splits, max(tiles.programs // (kv_heads * tiles_and_parts), 1))
    parts = (scratch.highest, scratch.total, scratch.mixed)
    shared = {"GROUP": group, "HEAD_DIM": head_dim, "CAUSAL": layer.causal}
    shared |= {"SPLIT": tiles.split, "GROUP_ROWS": MAX_ROWS * group}
    _attend_full[(kv_heads, programs, tiles_and_parts)](
        projected, k, v, *parts, cursor, rows, capacity, projected.stride(0), splits, layer.scale * LOG2_E,
        *_tensors(tree),
        KEYS=tiles.keys, TILE=tiles.rows, VALUES=values, ALONE=max_rows == 1, num_warps=tiles.warps,
        num_stages=tiles.stages, **shared,
    )  # fmt: skip
    _combine_splits[(max_rows, layer.num_heads, head_dim // lanes)](
        *parts, sinks, out, cursor, rows, splits, _tensors(tree)[0], LANES=lanes, **RowTiles(warps=4).options, **shared
    )


def attend_rows_reference(
    projected: Tensor,
    norms: HeadNorms,
    frequencies: Tensor,
    k: Tensor,
    v: Tensor,
    cursor: Tensor,
    rows: Tensor,
    layer: AttentionConfig,
    out: Tensor,
    tree: TreeRows | None = None,
    sinks: Tensor | None = None,
) -> None:
    """What ``attend_rows`` does, in PyTorch: ``norm_rope_store`` and ``reference_attention`` over the keys in order."""
    heads, capacity, start, count = layer.num_heads, k.shape[1], int(cursor), int(rows)
    norm_rope_store_reference(
        projected, norms, frequencies, k, v, cursor, rows, heads, value_is_key=layer.value_is_key, tree=tree
    )
    q = projected[:count, : heads * layer.head_dim].view(count, heads, layer.head_dim).contiguous()
    first = 0 if layer.window is None else max(0, start - layer.window + 1)
    behind = [list(range(count))] if tree is None else _paths(tree, count)
    for queries, seen in zip(q[None] if tree is None else q[:, None], behind, strict=True):
        stored = torch.tensor([*range(first, start), *(start + row for row in seen)], device=k.device) % capacity
        last = seen if tree is None else seen[-1:]
        out[last] = reference_attention(
            queries, k[:, stored], v[:, stored], causal=layer.causal, window=layer.window, scale=layer.scale,
            sinks=sinks,
        )  # fmt: skip


def _paths(tree: TreeRows, count: int) -> list[list[int]]:
    """Rows from the anchor's to each of the first ``count``."""
    return [path[: depth + 1] for path, depth in zip(tree.paths.tolist(), tree.depths.tolist(), strict=True)][:count]
