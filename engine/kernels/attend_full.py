"""The kernels of ``row_attention.py`` for layers that see everything: every split by itself, and the splits added up.

Queries are the rows of both products, in tiles of one size however many there are, of 64 for each four warps: as a
Hopper GPU's tensor cores take them. A smaller tile would be multiplied in another way, and a row's bits must not depend
on how many run. A program reads a key once for the whole tile.
"""

from __future__ import annotations

from .early_launch import early_kernel, let_next_start, wait_for_inputs
from .jit import dot, jit, tl

MOST_SPLITS = tl.constexpr(64) if tl else 64
"""Of one row."""


@jit
def _split_size(last_key: tl.tensor, SPLIT: tl.constexpr) -> tl.tensor:
    """Keys of each split of a row that sees up to ``last_key``: ``row_attention.split_size`` on the device."""
    size = last_key * 0 + SPLIT
    while size * MOST_SPLITS <= last_key:
        size *= 2
    return size


@jit
def _attend_one_split(
    projected: tl.tensor,
    k: tl.tensor,
    v: tl.tensor,
    highest_out: tl.tensor,
    total_out: tl.tensor,
    mixed_out: tl.tensor,
    cursor: tl.tensor,
    num_rows: tl.tensor,
    size: tl.tensor,
    split: tl.tensor,
    kv_row: tl.tensor,
    row_stride: tl.tensor,
    first_part: tl.tensor,
    first_packed: tl.tensor,
    first_value: tl.tensor,
    scale: tl.tensor,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    CAUSAL: tl.constexpr,
    SPLIT: tl.constexpr,
    KEYS: tl.constexpr,
    TILE: tl.constexpr,
    VALUES: tl.constexpr,
) -> None:
    """Softmax over a split's keys, unnormalised, and its sums, for the rows whose splits have this size.

    A step without a visible key changes nothing, bit for bit: its factors are exactly 1 and its terms exactly 0.
    """
    packed = first_packed + tl.arange(0, TILE)
    row = packed // GROUP
    query = row * row_stride + (tl.program_id(0) * GROUP + packed % GROUP) * HEAD_DIM
    # A row whose splits are larger sees more keys than so many splits of this size hold, and one whose splits are
    # smaller at most half of them.
    seen = MOST_SPLITS * size
    last_key = cursor + (row if CAUSAL else num_rows - 1)
    mine = (row < num_rows) & (last_key < seen) & ((2 * last_key >= seen) | (size == SPLIT))
    start = split * size
    end = tl.minimum(start + size, cursor + num_rows)
    lane = tl.arange(0, HEAD_DIM)
    value = first_value + tl.arange(0, VALUES)
    queries = tl.load(projected + query[:, None] + lane[None, :], mask=mine[:, None], other=0.0)
    highest = tl.full((TILE,), float("-inf"), tl.float32)
    total = tl.zeros((TILE,), tl.float32)
    mixed = tl.zeros((TILE, VALUES), tl.float32)
    for first in range(start, end, KEYS):
        key = first + tl.arange(0, KEYS)
        exists = key < end
        stored = (kv_row + key)[:, None] * HEAD_DIM
        keys = tl.load(k + stored + lane[None, :], mask=exists[:, None], other=0.0)
        scores = dot(queries, keys.T, tl.zeros((TILE, KEYS), tl.float32)) * scale
        visible = exists[None, :] & mine[:, None]
        if CAUSAL:
            visible = visible & (key[None, :] <= last_key[:, None])
        scores = tl.where(visible, scores, float("-inf"))
        now_highest = tl.maximum(highest, tl.max(scores, 1))
        # Before a row's first visible key the highest score is -inf, and a difference of two would be no number.
        shift = tl.where(now_highest == float("-inf"), 0.0, now_highest)
        fading = tl.exp2(highest - shift)
        weights = tl.exp2(scores - shift[:, None])
        total = total * fading + tl.sum(weights, 1)
        values = tl.load(v + stored + value[None, :], mask=exists[:, None], other=0.0)
        mixed = dot(weights.to(values.dtype), values, mixed * fading[:, None])
        highest = now_highest
    part = first_part + packed
    tl.store(highest_out + part, highest, mask=mine)  # each part of the values stores the same
    tl.store(total_out + part, total, mask=mine)
    tl.store(mixed_out + part[:, None] * HEAD_DIM + value[None, :], mixed, mask=mine[:, None])


@early_kernel
def _attend_full(
    projected: tl.tensor,
    k: tl.tensor,
    v: tl.tensor,
    highest_out: tl.tensor,
    total_out: tl.tensor,
    mixed_out: tl.tensor,
    cursor: tl.tensor,
    rows: tl.tensor,
    capacity: tl.tensor,
    row_stride: tl.tensor,
    splits: tl.tensor,
    scale: tl.tensor,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    CAUSAL: tl.constexpr,
    SPLIT: tl.constexpr,
    KEYS: tl.constexpr,
    TILE: tl.constexpr,
    VALUES: tl.constexpr,
    GROUP_ROWS: tl.constexpr,
) -> None:
    """Program (key head, every so many-th split, tile of grouped rows and part of the values).

    A row of the tile is (query row, head of the group). The rows of a launch may have splits of two sizes: then their
    keys are gone through once for each.
    """
    kv_head = tl.program_id(0)
    tiles = tl.num_programs(2) // (HEAD_DIM // VALUES)
    first_packed = tl.program_id(2) % tiles * TILE
    first_value = tl.program_id(2) // tiles * VALUES
    cursor_value = tl.load(cursor)
    num_rows = tl.load(rows)
    wait_for_inputs()
    if first_packed < num_rows * GROUP:
        end = cursor_value + num_rows
        largest = _split_size(end - 1, SPLIT)
        size = _split_size(cursor_value, SPLIT) if CAUSAL else largest
        while size <= largest:
            split = tl.program_id(1)
            while split * size < tl.minimum(end, MOST_SPLITS * size):
                # No number of rows is negative, which the compiler does not know: it would keep every row's address
                # in registers that the sums need.
                zero = tl.load(rows) >> 31
                _attend_one_split(
                    projected,
                    k,
                    v,
                    highest_out,
                    total_out,
                    mixed_out,
                    cursor_value,
                    num_rows,
                    size,
                    split,
                    kv_head * capacity,
                    row_stride,
                    (kv_head * splits + split) * GROUP_ROWS,
                    first_packed + zero,
                    first_value,
                    scale,
                    GROUP,
                    HEAD_DIM,
                    CAUSAL,
                    SPLIT,
                    KEYS,
                    TILE,
                    VALUES,
                )
                split += tl.num_programs(1)
            size *= 2


@early_kernel
def _combine_splits(
    highest_in: tl.tensor,
    total_in: tl.tensor,
    mixed_in: tl.tensor,
    out: tl.tensor,
    cursor: tl.tensor,
    rows: tl.tensor,
    splits: tl.tensor,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    CAUSAL: tl.constexpr,
    SPLIT: tl.constexpr,
    LANES: tl.constexpr,
    GROUP_ROWS: tl.constexpr,
) -> None:
    """Program (row, head, part of the head): adds the row's splits, all at once."""
    row = tl.program_id(0)
    head = tl.program_id(1)
    lane = tl.program_id(2) * LANES + tl.arange(0, LANES)
    num_rows = tl.load(rows)
    cursor_value = tl.load(cursor)
    wait_for_inputs()
    if row < num_rows:
        last_key = cursor_value + row if CAUSAL else cursor_value + num_rows - 1
        split = tl.arange(0, MOST_SPLITS)
        covered = split * _split_size(last_key, SPLIT) <= last_key
        part = ((head // GROUP) * splits + split) * GROUP_ROWS + row * GROUP + head % GROUP
        highest = tl.load(highest_in + part, mask=covered, other=float("-inf"))
        totals = tl.load(total_in + part, mask=covered, other=0.0)
        values = tl.load(mixed_in + part[:, None] * HEAD_DIM + lane[None, :], mask=covered[:, None], other=0.0)
        let_next_start()
        factor = tl.exp2(highest - tl.max(highest, 0))
        mixed = tl.sum(factor[:, None] * values, 0) / tl.sum(factor * totals, 0)
        address = (row * tl.num_programs(1) + head) * HEAD_DIM + lane
        tl.store(out + address, mixed.to(out.dtype.element_ty))
