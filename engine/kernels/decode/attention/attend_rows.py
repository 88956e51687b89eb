"""Attention of at most 16 rows over a layer's cache, from the projection to the mix, with the cursor on the device.
Splits of keys start at absolute positions and are added in order, so a row's bits depend neither on other rows nor on
how keys were cached. Layers with a window launch ``attend_window.py``, or ``attend_one_row.py`` with the same bits;
others ``rope.py`` and ``attend_full.py``, three launches, or ``attend_full_one_row.py`` in place of the first two.
``attend_tiles.py`` says how they are cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import e, log2
from typing import NamedTuple

import torch
from torch import Tensor

from ....layer_config import AttentionConfig
from ...reference.attention import reference_attention
from ...round.tree_rows import TreeRows
from ...shared.heads import HeadNorms
from ...toolchain.card import card_of
from ...toolchain.jit import MAX_ROWS, cdiv, power_of_two
from ..tiling.tiles import RowTiles, most_registers
from .add_splits import ALL_SPLITS
from .attend_full import _attend_full, _combine_splits
from .attend_full_one_row import _attend_full_one_row
from .attend_one_row import _attend_one_row
from .attend_tiles import AttendTiles, FullTiles, WindowTiles, attend_tiles, num_splits
from .attend_window import _attend_window
from .branches import most_branches
from .rope import norm_rope_store, norm_rope_store_reference

LOG2_E = log2(e)
COMBINED_LANES, COMBINING_WARPS = 128, 2
"""How many channels a program of ``_combine_splits`` adds, and with how many warps."""
ADDED_IN_ORDER = 16
"""The most splits of a row that are added one after the other; with more, a sum in order would wait for itself."""


class AttendScratch:
    """Memory where the programs of ``attend_rows`` leave their parts. Layers run one after the other, so all share
    it."""

    def __init__(
        self,
        layers: Sequence[AttentionConfig],
        capacities: Sequence[int],
        device: torch.device,
        tiles: AttendTiles | None = None,
    ):
        """Allocates enough for the tiles in use, or for other ``tiles`` that someone measures."""
        rows = values = heads = 1
        for layer, capacity in zip(layers, capacities, strict=True):
            chosen = tiles or attend_tiles(layer, capacity, card_of(device))
            count = num_splits(chosen, capacity, layer.window) * MAX_ROWS * layer.num_heads
            rows, values, heads = max(rows, count), max(values, count * layer.head_dim), max(heads, layer.num_heads)
        self.highest = torch.empty(rows, dtype=torch.float32, device=device)
        self.total = torch.empty(rows, dtype=torch.float32, device=device)
        self.mixed = torch.empty(values, dtype=torch.float32, device=device)
        self.arrivals = torch.zeros(heads * MAX_ROWS, dtype=torch.int32, device=device)
        """How many programs of each tile have finished; 0 between launches."""

    @property
    def nbytes(self) -> int:
        return sum(buffer.nbytes for buffer in (self.highest, self.total, self.mixed, self.arrivals))


class _Attending(NamedTuple):
    """What every launch of ``attend_rows`` or ``attend_one_query`` takes; their docstrings say what each is."""

    projected: Tensor
    k: Tensor
    v: Tensor
    cursor: Tensor
    rows: Tensor
    layer: AttentionConfig
    out: Tensor
    scratch: AttendScratch
    max_rows: int
    tree: TreeRows | None = None
    sinks: Tensor | None = None

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """Where splits leave their highest scores, sums of weights and mixes of values."""
        return self.scratch.highest, self.scratch.total, self.scratch.mixed

    @property
    def of_tree(self) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """The tensors of the tree; None each for a chain."""
        return (None, None, None) if self.tree is None else (self.tree.depths, self.tree.paths, self.tree.trunk)


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
    lets_go: bool = False,
) -> None:
    """Norms and turns up to 16 rows' heads, stores keys and values, and attends; see ``attend_rows_reference``.
    ``projected`` [16, >= width]: [queries | keys | values] side by side (no values with ``value_is_key``); queries may
    change. ``frequencies`` fp32 [head_dim / 2]. Rows stand at cursor .. cursor + rows - 1; ``k``, ``v`` [kv_heads,
    capacity, head_dim], a ring with a window; ``cursor``, ``rows`` int32 [1] on the device. The launch just before may
    not write these, a tree's tensors, or keys and values before the cursor. ``out`` [16, heads * head_dim] keeps rows
    from ``rows`` on; ``max_rows`` bounds them when recorded. With a ``tree`` row r stands at cursor + its depth in slot
    cursor + r, sees its ancestors behind the cursor, and has the bits of a chain of these. One row is no tree.
    ``sinks`` [heads], any float dtype, or None: as in ``reference/attention.py``. ``lets_go``:
    see ``TargetTiles``."""
    assert tree is None or (layer.causal and max_rows > 1)
    tiles = tiles or attend_tiles(layer, k.shape[1], card_of(k.device), max_rows)
    assert tree is None or tiles.split >= MAX_ROWS, "rows of a tree reach two splits at most"
    splits = num_splits(tiles, k.shape[1], layer.window)
    assert scratch.mixed.numel() >= splits * MAX_ROWS * layer.num_heads * layer.head_dim, "scratch of another layer"
    at = _Attending(projected, k, v, cursor, rows, layer, out, scratch, max_rows, tree, sinks)
    if isinstance(tiles, WindowTiles):
        _attend_in_window(at, norms, frequencies, tiles, lets_go)
        return
    if max_rows == 1 and tiles.alone and _heads_of_row(layer, tiles) <= tiles.rows:
        _attend_to_all_alone(at, norms, frequencies, tiles)
    else:
        norm_rope_store(
            projected, norms, frequencies, k, v, cursor, rows, layer.num_heads,
            value_is_key=layer.value_is_key, max_rows=max_rows, tree=tree, in_pairs=tiles.alone,
        )  # fmt: skip
        _attend_to_all(at, tiles)
    _combine(at, tiles)


def _attend_in_window(at: _Attending, norms: HeadNorms, frequencies: Tensor, tiles: WindowTiles, lets_go: bool) -> None:
    """Attends in a layer with a window: norms, turns and stores the rows' heads, too."""
    (kv_heads, capacity, head_dim), layer = at.k.shape, at.layer
    group, splits = layer.num_heads // kv_heads, num_splits(tiles, capacity, layer.window)
    arguments = (
        at.projected, norms.q, norms.k, frequencies, at.sinks, at.k, at.v, *at.parts, at.scratch.arrivals, at.out,
        at.cursor, at.rows, capacity, splits, norms.eps, layer.scale * LOG2_E,
    )  # fmt: skip
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
    heads = _heads_of_row(layer, tiles)
    assert layer.window is not None
    splits_of_row = cdiv(layer.window - 1, tiles.split) + 1
    if at.max_rows == 1 and heads <= tiles.rows and splits_of_row <= int(ALL_SPLITS):
        added = min(power_of_two(group), added)
        _attend_one_row[(kv_heads, splits)](*arguments, HEADS=heads, ADDED=added, LETS_GO=lets_go, **options)
        return
    # A row reaches two splits with keys from the cursor on, at most.
    programs = splits if at.tree is None else splits + 2 * most_branches(tiles.rows, group)
    grid = (kv_heads, programs, cdiv(at.max_rows * group, tiles.rows))
    _attend_window[grid](*arguments, at.projected.stride(0), *at.of_tree, ADDED=min(tiles.rows, added), **options)


def _heads_of_row(layer: AttentionConfig, tiles: AttendTiles) -> int:
    """How many heads the program of a row holds: the queries of a key's group, a key and a value, and at least one for
    each warp."""
    heads: int = power_of_two(layer.num_heads // layer.num_kv_heads + 2)
    return max(heads, tiles.warps)


def _programs_of(tiles: FullTiles, splits: int, others: int) -> int:
    """How many programs share the ``splits``, where the rest of the grid has ``others`` programs for each of them."""
    return min(splits, max(tiles.programs // others, 1))


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
    inclusive. ``k``, ``v`` [kv_heads, capacity, head_dim] lie in order and were stored before. ``last``, ``rows`` int32
    [1] on the device; ``out`` [16, heads * head_dim]."""
    tiles = attend_tiles(replace(layer, window=None), k.shape[1], card_of(k.device), max_rows=1)
    assert isinstance(tiles, FullTiles)
    at = _Attending(queries, k, v, last, rows, layer, out, scratch, 1)
    _attend_to_all(at, tiles)
    _combine(at, tiles)


def _attend_to_all(at: _Attending, tiles: FullTiles) -> None:
    """Attends in a layer without a window; queries are normed and turned, keys and values are stored."""
    (kv_heads, capacity, head_dim), layer = at.k.shape, at.layer
    group, splits, values = layer.num_heads // kv_heads, num_splits(tiles, capacity, None), min(tiles.values, head_dim)
    tiles_and_parts = cdiv(at.max_rows * group, tiles.rows) * (head_dim // values)
    _attend_full[(kv_heads, _programs_of(tiles, splits, kv_heads * tiles_and_parts), tiles_and_parts)](
        at.projected, at.k, at.v, *at.parts, at.cursor, at.rows, capacity, at.projected.stride(0), splits,
        layer.scale * LOG2_E, *at.of_tree,
        GROUP=group, HEAD_DIM=head_dim, CAUSAL=layer.causal, SPLIT=tiles.split, KEYS=tiles.keys, TILE=tiles.rows,
        VALUES=values, GROUP_ROWS=MAX_ROWS * group, ALONE=at.max_rows == 1, num_warps=tiles.warps,
        num_stages=tiles.stages,
    )  # fmt: skip


def _attend_to_all_alone(at: _Attending, norms: HeadNorms, frequencies: Tensor, tiles: FullTiles) -> None:
    """Does for one row what ``norm_rope_store`` and ``_attend_to_all`` do, in one launch."""
    (kv_heads, capacity, head_dim), layer = at.k.shape, at.layer
    group, splits, values = layer.num_heads // kv_heads, num_splits(tiles, capacity, None), min(tiles.values, head_dim)
    parts = head_dim // values
    _attend_full_one_row[(kv_heads, _programs_of(tiles, splits, kv_heads * parts), parts)](
        at.projected, norms.q, norms.k, frequencies, at.k, at.v, *at.parts, at.cursor, at.rows, capacity, splits,
        norms.eps, layer.scale * LOG2_E,
        GROUP=group, HEAD_DIM=head_dim, VALUE_IS_KEY=layer.value_is_key, ROUNDED_FIRST=norms.rounded_first,
        NORM_VALUES=norms.norm_values, SPLIT=tiles.split, KEYS=tiles.keys, TILE=tiles.rows, VALUES=values,
        GROUP_ROWS=MAX_ROWS * group, HEADS=_heads_of_row(layer, tiles), num_warps=tiles.warps, num_stages=tiles.stages,
        maxnreg=most_registers(tiles.warps),
    )  # fmt: skip


def _combine(at: _Attending, tiles: FullTiles) -> None:
    """Adds up the splits that lie in the scratch memory and stores the attention in ``out``."""
    layer, capacity = at.layer, at.k.shape[1]
    lanes = min(COMBINED_LANES, layer.head_dim)
    group = layer.num_heads // layer.num_kv_heads
    _combine_splits[(at.max_rows, layer.num_heads, layer.head_dim // lanes)](
        *at.parts, at.sinks, at.out, at.cursor, at.rows, num_splits(tiles, capacity, None), at.of_tree[0],
        GROUP=group, HEAD_DIM=layer.head_dim, CAUSAL=layer.causal, SPLIT=tiles.split, LANES=lanes,
        GROUP_ROWS=MAX_ROWS * group, FEW=ADDED_IN_ORDER, **RowTiles(COMBINING_WARPS).options,
    )  # fmt: skip


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
    """For each of the first ``count`` rows, the rows from the anchor's to it."""
    return [path[: depth + 1] for path, depth in zip(tree.paths.tolist(), tree.depths.tolist(), strict=True)][:count]
