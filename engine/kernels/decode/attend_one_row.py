"""``_attend_window`` of ``attention.py`` for one row, bit for bit. Such a pass waits for launches more than for bytes,
so all that needs no input, keys and values among it, comes before the wait."""

from __future__ import annotations

from ..shared.heads import cos_sin, norm_pairs, turn_pairs
from ..toolchain.early_launch import early_kernel, wait_for_inputs
from ..toolchain.jit import jit, tl
from .add_splits import Parts
from .attend_window import attend_split, inverse_rms, load_halves, store_halves


@jit
def _repeated(x: tl.tensor, ROWS: tl.constexpr) -> tl.tensor:
    """x [N, SIZE] over and over, [ROWS, SIZE]. (Joined to itself, it would lie transposed in shared memory.)"""
    times: tl.constexpr = ROWS // x.shape[0]
    x = tl.broadcast_to(tl.reshape(x, (1, x.shape[0], x.shape[1])), (times, x.shape[0], x.shape[1]))
    return tl.reshape(x, (ROWS, x.shape[2]))


@early_kernel
def _attend_one_row(
    projected: tl.tensor, q_weight: tl.tensor, k_weight: tl.tensor, frequencies: tl.tensor, sinks: tl.tensor,
    k: tl.tensor, v: tl.tensor, highest_out: tl.tensor, total_out: tl.tensor, mixed_out: tl.tensor, arrivals: tl.tensor,
    out: tl.tensor, cursor: tl.tensor, rows: tl.tensor, capacity: tl.tensor, splits: tl.tensor, eps: tl.tensor,
    scale: tl.tensor,
    GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, VALUE_IS_KEY: tl.constexpr, ROUNDED_FIRST: tl.constexpr,
    NORM_VALUES: tl.constexpr, WINDOW: tl.constexpr, CAUSAL: tl.constexpr, SPLIT: tl.constexpr, TILE: tl.constexpr,
    GROUP_ROWS: tl.constexpr, ADDED: tl.constexpr, HEADS: tl.constexpr,
) -> None:  # fmt: skip
    """Program (key head, split). Its ``HEADS`` heads are the group's queries, the new key and, as often as fits, the
    new value."""
    kv_head = tl.program_id(0)
    kv_heads = tl.num_programs(0)
    half: tl.constexpr = HEAD_DIM // 2
    lane = tl.arange(0, HEAD_DIM)
    pair = tl.arange(0, half)
    head = tl.arange(0, HEADS)
    cursor_value = tl.load(cursor)
    num_rows = tl.load(rows)
    end = tl.where(num_rows > 0, cursor_value + 1, 0)
    first_split = tl.maximum(cursor_value - WINDOW + 1, 0) // SPLIT
    start = (first_split + tl.program_id(1)) * SPLIT
    key = start + tl.arange(0, SPLIT)
    exists = (key < end) & (key > cursor_value - WINDOW)
    stored = start % capacity + tl.arange(0, SPLIT)
    stored = tl.where(stored < capacity, stored, stored - capacity)
    address = (kv_head * capacity + stored)[:, None] * HEAD_DIM
    # Keys before the cursor are older than the launch before this one.
    is_old = (exists & (key < cursor_value))[:, None]
    keys_1 = tl.load(k + address + pair[None, :], mask=is_old, other=0.0)
    keys_2 = tl.load(k + address + half + pair[None, :], mask=is_old, other=0.0)
    values = tl.load(v + address + lane[None, :], mask=is_old, other=0.0)
    if q_weight is not None:
        weight_1, weight_2 = load_halves(tl.where(head < GROUP, q_weight, k_weight), HEAD_DIM)
    cos, sin = cos_sin(cursor_value.to(tl.float32) * tl.load(frequencies + pair)[None, :])
    source = tl.where(head < GROUP, kv_head * GROUP + head, kv_heads * GROUP + kv_head)
    if not VALUE_IS_KEY:
        source += tl.where(head > GROUP, kv_heads, 0)
    new_place = start % capacity + cursor_value - start
    new_place = tl.where(new_place < capacity, new_place, new_place - capacity)
    new_head = head * 0 + (kv_head * capacity + new_place) * HEAD_DIM
    has_new = (start < end) & (start + SPLIT > cursor_value)
    wait_for_inputs()
    raw_x, raw_y = load_halves(projected + source * HEAD_DIM, HEAD_DIM)
    dtype = raw_x.dtype
    raw_x = raw_x.to(tl.float32)
    raw_y = raw_y.to(tl.float32)
    inverse = inverse_rms(raw_x, raw_y, eps, HEAD_DIM)
    x = raw_x
    y = raw_y
    if q_weight is not None:
        x, y = norm_pairs(raw_x, raw_y, inverse, weight_1, weight_2, ROUNDED_FIRST)
    x, y = turn_pairs(x, y, cos, sin)
    if NORM_VALUES:
        raw_x *= inverse
        raw_y *= inverse
    store_halves(k + new_head, x, y, has_new & (head == GROUP), HEAD_DIM)
    store_halves(v + new_head, raw_x, raw_y, has_new & (head == GROUP + 1), HEAD_DIM)
    # Programs without keys stay until here: the compiler would move all that has one use into the branch.
    if start < end:
        tl.debug_barrier()  # what one thread stored, others load
        is_new = (key == cursor_value)[:, None]
        new_row = (key * 0 + (kv_head * capacity + new_place) * HEAD_DIM)[:, None]
        attend_split(
            _repeated(x.to(dtype), TILE), _repeated(y.to(dtype), TILE),
            tl.load(k + new_row + pair[None, :], mask=is_new, other=keys_1),
            tl.load(k + new_row + half + pair[None, :], mask=is_new, other=keys_2),
            tl.load(v + new_row + lane[None, :], mask=is_new, other=values), key, exists,
            Parts(highest_out, total_out, mixed_out), sinks, arrivals, out, cursor_value, num_rows, first_split, end,
            splits, scale, tl.program_id(1), 0, None, None, GROUP, HEAD_DIM, WINDOW, CAUSAL, SPLIT, TILE, GROUP_ROWS,
            ADDED, True,
        )  # fmt: skip
