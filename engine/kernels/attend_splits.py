"""The kernels of ``row_attention.py``: every split of the keys by itself, and the splits added up.

Keys are the rows of the scores and queries their columns: tensor cores of a Hopper GPU take 64 rows at a time. What is
mixed of the values has queries as its rows, at most 32: they and 64 would be multiplied in different ways, and a row's
bits must not depend on its tile. (Values as rows and narrow weights as columns read past shared memory: Triton 3.6.)
"""

from __future__ import annotations

from .jit import dot, jit, tl

OCTAVE = tl.constexpr(32) if tl else 32
"""Without a window, splits between a power of two and the next one: sizes double there, once positions exceed 64."""
AHEAD = tl.constexpr(5) if tl else 5
"""Splits whose parts the last program of a tile reads at once."""


@jit
def _doublings(split: tl.tensor) -> tl.tensor:
    """How often the size of this split has doubled, without a window."""
    return tl.maximum(split // OCTAVE - 1, 0)


@jit
def _start(split: tl.tensor, SPLIT: tl.constexpr) -> tl.tensor:
    """The split's first position, without a window: ``row_attention.split_start`` on the device."""
    doublings = _doublings(split)
    return ((split - OCTAVE * doublings) * SPLIT) << doublings


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
    size: tl.tensor,
    capacity: tl.tensor,
    kv_head: tl.tensor,
    part: tl.tensor,
    scale: tl.tensor,
    HEAD_DIM: tl.constexpr,
    WINDOW: tl.constexpr,
    CAUSAL: tl.constexpr,
    KEYS: tl.constexpr,
    TILE: tl.constexpr,
    ONE_STEP: tl.constexpr,
) -> None:
    """Softmax over ``size`` keys from ``start`` on, unnormalised, and its sums.

    A step without a visible key changes nothing, bit for bit: its factors are exactly 1 and its terms exactly 0.
    """
    valid = row < num_rows
    lane = tl.arange(0, HEAD_DIM)
    highest = tl.full((TILE,), float("-inf"), tl.float32)
    total = tl.zeros((TILE,), tl.float32)
    mixed = tl.zeros((TILE, HEAD_DIM), tl.float32)
    first_stored = start % capacity if WINDOW > 0 else start
    for offset in range(0, size, KEYS):
        key = start + offset + tl.arange(0, KEYS)
        exists = key < cursor + num_rows
        stored = first_stored + offset + tl.arange(0, KEYS)
        if WINDOW > 0:
            exists = exists & (key > cursor - WINDOW)
            stored = tl.where(stored < capacity, stored, stored - capacity)
        address = (kv_head * capacity + stored)[:, None] * HEAD_DIM + lane[None, :]
        keys = tl.load(k + address, mask=exists[:, None], other=0.0)
        values = tl.load(v + address, mask=exists[:, None], other=0.0)
        if ONE_STEP:
            # Both are on their way before either is waited for: the compiler moves no load past a barrier, and without
            # one it waits for the first keys before it asks for the last values.
            tl.debug_barrier()
            keys = tl.where(exists[:, None], keys, 0.0)
            values = tl.where(exists[:, None], values, 0.0)
        scores = dot(keys, queries, tl.zeros((KEYS, TILE), tl.float32)) * scale
        distance = (cursor + row)[None, :] - key[:, None]
        visible = exists[:, None] & valid[None, :]
        if CAUSAL:
            visible = visible & (distance >= 0)
        if WINDOW > 0:
            visible = visible & (distance < WINDOW) & (distance > -WINDOW)
        scores = tl.where(visible, scores, float("-inf"))
        now_highest = tl.maximum(highest, tl.max(scores, 0))
        # Before a row's first visible key the highest score is -inf, and a difference of two would be no number.
        shift = tl.where(now_highest == float("-inf"), 0.0, now_highest)
        fading = tl.exp2(highest - shift)
        weights = tl.exp2(scores - shift[None, :])
        total = total * fading + tl.sum(weights, 0)
        mixed = dot(weights.to(values.dtype).T, values, mixed * fading[:, None])
        highest = now_highest
    tl.store(highest_out + part, highest, mask=valid)
    tl.store(total_out + part, total, mask=valid)
    tl.store(mixed_out + part[:, None] * HEAD_DIM + lane[None, :], mixed, mask=valid[:, None])


@jit
def _add_splits(
    highest_in: tl.tensor,
    total_in: tl.tensor,
    mixed_in: tl.tensor,
    first_part: tl.tensor,
    valid: tl.tensor,
    count: tl.tensor,
    HEAD_DIM: tl.constexpr,
    TILE: tl.constexpr,
    GROUP_ROWS: tl.constexpr,
) -> tl.tensor:
    """The attention of a tile of rows [TILE, HEAD_DIM]: its ``count`` splits, added one by one in their order.

    One that a row sees nothing of changes nothing, bit for bit, as in ``_attend_one_split``.
    """
    lane = tl.arange(0, HEAD_DIM)
    highest = tl.full((TILE,), float("-inf"), tl.float32)
    total = tl.zeros((TILE,), tl.float32)
    mixed = tl.zeros((TILE, HEAD_DIM), tl.float32)
    for first in range(0, count, AHEAD):
        for ahead in tl.static_range(AHEAD):  # unrolled, so that their loads are under way together
            there = valid & (first + ahead < count)
            part = first_part + (first + ahead) * GROUP_ROWS
            of_split = tl.load(highest_in + part, mask=there, other=float("-inf"))
            totals = tl.load(total_in + part, mask=there, other=0.0)
            values = tl.load(mixed_in + part[:, None] * HEAD_DIM + lane[None, :], mask=there[:, None], other=0.0)
            now_highest = tl.maximum(highest, of_split)
            shift = tl.where(now_highest == float("-inf"), 0.0, now_highest)
            fading = tl.exp2(highest - shift)
            factor = tl.exp2(of_split - shift)
            total = total * fading + totals * factor
            mixed = mixed * fading[:, None] + values * factor[:, None]
            highest = now_highest
    return mixed / tl.where(valid, total, 1.0)[:, None]


@jit
def _attend_split(
    q: tl.tensor,
    k: tl.tensor,
    v: tl.tensor,
    highest_out: tl.tensor,
    total_out: tl.tensor,
    mixed_out: tl.tensor,
    arrivals: tl.tensor,
    out: tl.tensor,
    cursor: tl.tensor,
    rows: tl.tensor,
    capacity: tl.tensor,
    splits: tl.tensor,
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
    """Program (key head, split, tile of grouped rows).

    A row of the tile is (query row, head of the group). Behind a window, the last program of a tile to finish adds its
    splits. Without one every so many splits are a program's, and ``_combine_splits`` adds.
    """
    kv_head = tl.program_id(0)
    slot = tl.program_id(1)
    first_packed = tl.program_id(2) * TILE
    packed = first_packed + tl.arange(0, TILE)
    row = packed // GROUP
    lane = tl.arange(0, HEAD_DIM)
    query = row * GROUP * tl.num_programs(0) + kv_head * GROUP + packed % GROUP
    first_part = kv_head * splits * GROUP_ROWS + packed
    cursor_value = tl.load(cursor)
    num_rows = tl.load(rows)
    # Asked for before it is known which rows count: leftovers in the others reach no row but their own.
    queries = tl.load(q + query[None, :] * HEAD_DIM + lane[:, None], mask=(packed < GROUP_ROWS)[None, :], other=0.0)
    end = tl.where(first_packed < num_rows * GROUP, cursor_value + num_rows, 0)
    if WINDOW > 0:
        first_split = tl.maximum(cursor_value - WINDOW + 1, 0) // SPLIT
        start = (first_split + slot) * SPLIT
        if start < end:
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
                SPLIT,
                capacity,
                kv_head,
                first_part + slot * GROUP_ROWS,
                scale,
                HEAD_DIM,
                WINDOW,
                CAUSAL,
                KEYS,
                TILE,
                KEYS == SPLIT,
            )
            count = (end - 1) // SPLIT - first_split + 1
            arrival = arrivals + kv_head * tl.num_programs(2) + tl.program_id(2)
            tl.debug_barrier()  # the arrival of one thread speaks for the stores of all
            if tl.atomic_add(arrival, 1, sem="acq_rel") == count - 1:
                tl.store(arrival, 0)  # for the next launch
                valid = row < num_rows
                mixed = _add_splits(
                    highest_out, total_out, mixed_out, first_part, valid, count, HEAD_DIM, TILE, GROUP_ROWS
                )
                address = query[:, None] * HEAD_DIM + lane[None, :]
                tl.store(out + address, mixed.to(out.dtype.element_ty), mask=valid[:, None])
    else:
        start = _start(slot, SPLIT)
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
                tl.minimum(SPLIT << _doublings(slot), end - start),
                capacity,
                kv_head,
                first_part + slot * GROUP_ROWS,
                scale,
                HEAD_DIM,
                WINDOW,
                CAUSAL,
                KEYS,
                TILE,
                False,
            )
            slot += tl.num_programs(1)
            start = _start(slot, SPLIT)


@jit
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
    STEP: tl.constexpr,
    LANES: tl.constexpr,
    GROUP_ROWS: tl.constexpr,
) -> None:
    """Program (row, head, part of the head): adds the row's splits, in steps that start at absolute multiples."""
    row = tl.program_id(0)
    head = tl.program_id(1)
    lane = tl.program_id(2) * LANES + tl.arange(0, LANES)
    num_rows = tl.load(rows)
    cursor_value = tl.load(cursor)
    if row < num_rows:
        last_key = cursor_value + row if CAUSAL else cursor_value + num_rows - 1
        first_part = (head // GROUP) * splits * GROUP_ROWS + row * GROUP + head % GROUP
        highest = float("-inf")
        total = 0.0
        mixed = tl.zeros((LANES,), tl.float32)
        step = 0
        while _start(step, SPLIT) <= last_key:
            split = step + tl.arange(0, STEP)
            covered = _start(split, SPLIT) <= last_key
            part = first_part + split * GROUP_ROWS
            of_split = tl.load(highest_in + part, mask=covered, other=float("-inf"))
            totals = tl.load(total_in + part, mask=covered, other=0.0)
            values = tl.load(mixed_in + part[:, None] * HEAD_DIM + lane[None, :], mask=covered[:, None], other=0.0)
            now_highest = tl.maximum(highest, tl.max(of_split, 0))
            factor = tl.exp2(of_split - now_highest)
            fading = tl.exp2(highest - now_highest)
            total = total * fading + tl.sum(factor * totals, 0)
            mixed = mixed * fading + tl.sum(factor[:, None] * values, 0)
            highest = now_highest
            step += STEP
        address = (row * tl.num_programs(1) + head) * HEAD_DIM + lane
        tl.store(out + address, (mixed / total).to(out.dtype.element_ty))
