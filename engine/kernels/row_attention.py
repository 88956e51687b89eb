"""Attention of at most 16 rows over a layer's cache, with the cursor on the device.

Keys are taken in splits that start at absolute positions and are added up in their order, so that a row's bits depend
neither on the rows beside it nor on how its keys came into the cache. ``attention.py`` defines the operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import e, log2

import torch
from torch import Tensor

from ..config import AttentionConfig
from .attention import reference_attention
from .jit import LAUNCH, MAX_ROWS, cdiv, dot, jit, tl, wait_for_inputs

LOG2_E = log2(e)


@dataclass(frozen=True, slots=True)
class AttendTiles:
    """Tile sizes of ``attend_rows``."""

    split: int
    """Keys of one program, which start at a multiple of it: the order of every sum depends on positions alone."""
    keys: int
    """Keys of one step; divides ``split``."""
    rows: int
    """Grouped query rows of one program; divides 16 * group."""
    warps: int
    stages: int


COMBINE_SPLITS = 16
"""Splits added in one step of the combination; steps start at multiples of it."""
MAX_SPLITS = 256
"""Bounds the scratch: a layer that would have more takes larger splits."""


ATTEND_TILES = {
    128: (AttendTiles(64, 32, 64, 4, 2), AttendTiles(64, 64, 64, 4, 1), AttendTiles(128, 64, 64, 4, 2)),
    256: (AttendTiles(64, 32, 32, 4, 2), AttendTiles(64, 64, 32, 4, 1), AttendTiles(64, 64, 32, 8, 1)),
    512: (AttendTiles(128, 32, 64, 8, 2), AttendTiles(128, 64, 32, 8, 2), AttendTiles(64, 64, 16, 8, 1)),
}
"""Tiles worth measuring, by head size; the first are in use. A head of 512 spills with fewer warps."""


def attend_tiles(layer: AttentionConfig, capacity: int) -> AttendTiles:
    """Tiles for a layer whose cache has ``capacity`` rows; they don't depend on how many rows run."""
    size = next((size for size in ATTEND_TILES if layer.head_dim <= size), max(ATTEND_TILES))
    return fitting(ATTEND_TILES[size][0], layer, capacity)


def fitting(tiles: AttendTiles, layer: AttentionConfig, capacity: int) -> AttendTiles:
    """The same tiles, with no more rows than the layer has and no more splits than the scratch should hold."""
    tiles = replace(tiles, rows=min(tiles.rows, MAX_ROWS * layer.num_heads // layer.num_kv_heads))
    while layer.window is None and cdiv(capacity, tiles.split) > MAX_SPLITS:
        tiles = replace(tiles, split=2 * tiles.split)
    return tiles


LARGE_PROGRAMS, SMALL_PROGRAMS = 128, 512
"""Programs of one pass over the keys, of heads of 512 and of smaller ones: as many as GPUs hold at a time. A program
for every split of a large cache would be thousands that only find out that there is nothing to do."""


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
        rows = values = 1
        for layer, capacity in zip(layers, capacities, strict=True):
            chosen = tiles or attend_tiles(layer, capacity)
            count = num_splits(chosen, capacity, layer.window) * MAX_ROWS * layer.num_heads
            rows, values = max(rows, count), max(values, count * layer.head_dim)
        self.highest = torch.empty(rows, dtype=torch.float32, device=device)
        self.total = torch.empty(rows, dtype=torch.float32, device=device)
        self.mixed = torch.empty(values, dtype=torch.float32, device=device)


def num_splits(tiles: AttendTiles, capacity: int, window: int | None) -> int:
    """How many splits the keys of 16 neighbouring queries can touch."""
    return cdiv(capacity, tiles.split) if window is None else cdiv(window - 1 + MAX_ROWS, tiles.split) + 1


@jit
def _first_split(position: tl.tensor, WINDOW: tl.constexpr, SPLIT: tl.constexpr) -> tl.tensor:
    """The split of the oldest key that a query at ``position`` sees; WINDOW 0 is none."""
    return position * 0 if WINDOW == 0 else tl.maximum(position - WINDOW + 1, 0) // SPLIT


@jit
def _attend_one_split(
    queries: tl.tensor,
    row: tl.tensor,
    k: tl.tensor,
    v: tl.tensor,
    highest_out: tl.tensor,
    total_out: tl.tensor,
    mixed_out: tl.tensor,
    cursor: tl.tensor,
    num_rows: tl.tensor,
    start: tl.tensor,
    capacity: tl.tensor,
    kv_head: tl.tensor,
    part: tl.tensor,
    scale: tl.tensor,
    HEAD_DIM: tl.constexpr,
    WINDOW: tl.constexpr,
    CAUSAL: tl.constexpr,
    SPLIT: tl.constexpr,
    KEYS: tl.constexpr,
    TILE: tl.constexpr,
) -> None:
    """Softmax over the keys from ``start`` on, unnormalised, and its sums.

    A step without a visible key changes nothing, bit for bit: its factors are exactly 1 and its terms exactly 0.
    """
    valid = row < num_rows
    lane = tl.arange(0, HEAD_DIM)
    highest = tl.full((TILE,), float("-inf"), tl.float32)
    total = tl.zeros((TILE,), tl.float32)
    mixed = tl.zeros((TILE, HEAD_DIM), tl.float32)
    for offset in range(0, SPLIT, KEYS):
        key = start + offset + tl.arange(0, KEYS)
        exists = key < cursor + num_rows
        stored = key
        if WINDOW > 0:
            exists = exists & (key > cursor - WINDOW)
            stored = key % capacity
        address = (kv_head * capacity + stored)[:, None] * HEAD_DIM + lane[None, :]
        keys = tl.load(k + address, mask=exists[:, None], other=0.0)
        scores = dot(queries, keys.T, tl.zeros((TILE, KEYS), tl.float32)) * scale
        distance = (cursor + row)[:, None] - key[None, :]
        visible = exists[None, :] & valid[:, None]
        if CAUSAL:
            visible = visible & (distance >= 0)
        if WINDOW > 0:
            visible = visible & (distance < WINDOW) & (distance > -WINDOW)
        scores = tl.where(visible, scores, float("-inf"))
        now_highest = tl.maximum(highest, tl.max(scores, 1))
        # Before a row's first visible key the highest score is -inf, and a difference of two would be no number.
        shift = tl.where(now_highest == float("-inf"), 0.0, now_highest)
        fading = tl.exp2(highest - shift)
        weights = tl.exp2(scores - shift[:, None])
        values = tl.load(v + address, mask=exists[:, None], other=0.0)
        total = total * fading + tl.sum(weights, 1)
        mixed = dot(weights.to(values.dtype), values, mixed * fading[:, None])
        highest = now_highest
    tl.store(highest_out + part, highest, mask=valid)
    tl.store(total_out + part, total, mask=valid)
    tl.store(mixed_out + part[:, None] * HEAD_DIM + lane[None, :], mixed, mask=valid[:, None])


@jit
def _attend_split(
    q: tl.tensor,
    k: tl.tensor,
    v: tl.tensor,
    highest_out: tl.tensor,
    total_out: tl.tensor,
    mixed_out: tl.tensor,
    cursor: tl.tensor,
    rows: tl.tensor,
    capacity: tl.tensor,
    slots: tl.tensor,
    scale: tl.tensor,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    WINDOW: tl.constexpr,
    CAUSAL: tl.constexpr,
    SPLIT: tl.constexpr,
    KEYS: tl.constexpr,
    TILE: tl.constexpr,
    GROUP_ROWS: tl.constexpr,
) -> None:
    """Program (key head, split, tile of grouped rows); without a window every so many splits are a program's.

    A row of the tile is (query row, head of the group).
    """
    wait_for_inputs()
    kv_head = tl.program_id(0)
    cursor_value = tl.load(cursor)
    num_rows = tl.load(rows)
    end = cursor_value + num_rows
    first_split = _first_split(cursor_value, WINDOW, SPLIT)
    first_packed = tl.program_id(2) * TILE
    slot = tl.program_id(1)
    start = (first_split + slot) * SPLIT
    if (start < end) & (first_packed < num_rows * GROUP):
        packed = first_packed + tl.arange(0, TILE)
        row = packed // GROUP
        lane = tl.arange(0, HEAD_DIM)
        query = row * GROUP * tl.num_programs(0) + kv_head * GROUP + packed % GROUP
        queries = tl.load(q + query[:, None] * HEAD_DIM + lane[None, :], mask=(row < num_rows)[:, None], other=0.0)
        part = (kv_head * slots + slot) * GROUP_ROWS + packed
        if WINDOW > 0:
            _attend_one_split(
                queries,
                row,
                k,
                v,
                highest_out,
                total_out,
                mixed_out,
                cursor_value,
                num_rows,
                start,
                capacity,
                kv_head,
                part,
                scale,
                HEAD_DIM,
                WINDOW,
                CAUSAL,
                SPLIT,
                KEYS,
                TILE,
            )
        else:
            while start < end:
                _attend_one_split(
                    queries,
                    row,
                    k,
                    v,
                    highest_out,
                    total_out,
                    mixed_out,
                    cursor_value,
                    num_rows,
                    start,
                    capacity,
                    kv_head,
                    part,
                    scale,
                    HEAD_DIM,
                    WINDOW,
                    CAUSAL,
                    SPLIT,
                    KEYS,
                    TILE,
                )
                start += tl.num_programs(1) * SPLIT
                part += tl.num_programs(1) * GROUP_ROWS


@jit
def _combine_splits(
    highest_in: tl.tensor,
    total_in: tl.tensor,
    mixed_in: tl.tensor,
    out: tl.tensor,
    cursor: tl.tensor,
    rows: tl.tensor,
    slots: tl.tensor,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    WINDOW: tl.constexpr,
    CAUSAL: tl.constexpr,
    SPLIT: tl.constexpr,
    STEP: tl.constexpr,
    LANES: tl.constexpr,
    GROUP_ROWS: tl.constexpr,
) -> None:
    """Program (row, head, part of the head): adds the row's splits, in steps that start at absolute multiples."""
    wait_for_inputs()
    row = tl.program_id(0)
    num_rows = tl.load(rows)
    if row < num_rows:
        head = tl.program_id(1)
        cursor_value = tl.load(cursor)
        position = cursor_value + row
        lane = tl.program_id(2) * LANES + tl.arange(0, LANES)
        first_slot = _first_split(cursor_value, WINDOW, SPLIT)
        low = _first_split(position, WINDOW, SPLIT)
        last_key = position if CAUSAL else cursor_value + num_rows - 1
        high = last_key // SPLIT
        packed = row * GROUP + head % GROUP
        highest = float("-inf")
        total = 0.0
        mixed = tl.zeros((LANES,), tl.float32)
        step = low // STEP * STEP
        while step <= high:
            split = step + tl.arange(0, STEP)
            covered = (split >= low) & (split <= high)
            part = ((head // GROUP) * slots + split - first_slot) * GROUP_ROWS + packed
            of_split = tl.load(highest_in + part, mask=covered, other=float("-inf"))
            now_highest = tl.maximum(highest, tl.max(of_split, 0))
            factor = tl.exp2(of_split - now_highest)
            fading = tl.exp2(highest - now_highest)
            values = tl.load(mixed_in + part[:, None] * HEAD_DIM + lane[None, :], mask=covered[:, None], other=0.0)
            total = total * fading + tl.sum(factor * tl.load(total_in + part, mask=covered, other=0.0), 0)
            mixed = mixed * fading + tl.sum(factor[:, None] * values, 0)
            highest = now_highest
            step += STEP
        address = (row * tl.num_programs(1) + head) * HEAD_DIM + lane
        tl.store(out + address, (mixed / total).to(out.dtype.element_ty))


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
    slots = num_splits(tiles, capacity, layer.window)
    assert scratch.mixed.numel() >= slots * MAX_ROWS * layer.num_heads * head_dim, "scratch of another layer"
    shared = {"GROUP": group, "HEAD_DIM": head_dim, "WINDOW": layer.window or 0, "CAUSAL": layer.causal}
    shared |= {"SPLIT": tiles.split, "GROUP_ROWS": MAX_ROWS * group}
    parts = (scratch.highest, scratch.total, scratch.mixed)
    most = (LARGE_PROGRAMS if head_dim > 256 else SMALL_PROGRAMS) // kv_heads
    programs = slots if layer.window is not None else min(slots, max(most, 1))
    _attend_split[(kv_heads, programs, cdiv(max_rows * group, tiles.rows))](
        q,
        k,
        v,
        *parts,
        cursor,
        rows,
        capacity,
        slots,
        layer.scale * LOG2_E,
        KEYS=tiles.keys,
        TILE=tiles.rows,
        num_warps=tiles.warps,
        num_stages=tiles.stages,
        **shared,
        **LAUNCH,
    )
    lanes = min(128, head_dim)
    _combine_splits[(max_rows, layer.num_heads, head_dim // lanes)](
        *parts, out, cursor, rows, slots, STEP=COMBINE_SPLITS, LANES=lanes, num_warps=4, **shared, **LAUNCH
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
