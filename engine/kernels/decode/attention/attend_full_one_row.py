"""The kernel ``_attend_full`` of ``attention.py`` for one row, with norm, rope and storing of its heads, bit for bit.
As in ``attend_one_row.py``, everything that needs no input is loaded before the wait, a program's first keys and values
among it."""

from __future__ import annotations

from ...toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ...toolchain.jit import dot, jit, tl
from .attend_full import add_keys, split_size
from .new_heads import begin_heads, finish_heads, repeated, weights_of_heads


@jit
def _load_keys(
    k: tl.tensor, v: tl.tensor, kv_row: tl.tensor, key: tl.tensor, there: tl.tensor, channel: tl.tensor,
    others: tl.tensor, HEAD_DIM: tl.constexpr, VALUES: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor, tl.tensor]:  # fmt: skip
    """Both halves of keys, and their values from ``channel`` on, at those positions that are ``there``; elsewhere
    ``others``: three such tiles, or None for zeros."""
    half: tl.constexpr = HEAD_DIM // 2
    pair = tl.arange(0, half)
    stored = (kv_row + key)[:, None] * HEAD_DIM
    value = channel + tl.arange(0, VALUES)
    return (
        tl.load(k + stored + pair[None, :], mask=there[:, None], other=0.0 if others is None else others[0]),
        tl.load(k + stored + half + pair[None, :], mask=there[:, None], other=0.0 if others is None else others[1]),
        tl.load(v + stored + value[None, :], mask=there[:, None], other=0.0 if others is None else others[2]),
    )


@jit
def _add_loaded(
    so_far: tl.tensor, queries: tl.tensor, loaded: tl.tensor, scale: tl.tensor, visible: tl.tensor
) -> tuple[tl.tensor, tl.tensor, tl.tensor]:
    """``add_keys`` of what ``_load_keys`` loaded. The product of the second half goes on where that of the first ends,
    which has the bits of one product."""
    keys_1, keys_2, values = loaded
    highest, total, mixed = so_far
    scores = dot(queries[0], keys_1.T, tl.zeros(visible.shape, tl.float32))
    scores = dot(queries[1], keys_2.T, scores) * scale
    return add_keys(scores, visible, values, highest, total, mixed)  # type: ignore[no-any-return]


@early_kernel
def _attend_full_one_row(
    projected: tl.tensor, q_weight: tl.tensor, k_weight: tl.tensor, frequencies: tl.tensor, k: tl.tensor, v: tl.tensor,
    highest_out: tl.tensor, total_out: tl.tensor, mixed_out: tl.tensor, cursor: tl.tensor, rows: tl.tensor,
    capacity: tl.tensor, splits: tl.tensor, eps: tl.tensor, scale: tl.tensor,
    GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, VALUE_IS_KEY: tl.constexpr, ROUNDED_FIRST: tl.constexpr,
    NORM_VALUES: tl.constexpr, SPLIT: tl.constexpr, KEYS: tl.constexpr, TILE: tl.constexpr, VALUES: tl.constexpr,
    GROUP_ROWS: tl.constexpr, HEADS: tl.constexpr,
) -> None:  # fmt: skip
    """A program for each (key head, every so many-th split, part of the values). ``HEADS``: see
    ``weights_of_heads``."""
    kv_head = tl.program_id(0)
    kv_row = kv_head * capacity
    channel = tl.program_id(2) * VALUES
    cursor_value = tl.load(cursor)
    num_rows = tl.load(rows)
    end = tl.where(num_rows > 0, cursor_value + 1, 0)
    size = split_size(cursor_value, SPLIT)
    split = tl.program_id(1)
    key = split * size + tl.arange(0, KEYS)
    # Keys before the cursor are older than the launch before this one.
    loaded = _load_keys(k, v, kv_row, key, key < cursor_value, channel, None, HEAD_DIM, VALUES)
    weights = None if q_weight is None else weights_of_heads(q_weight, k_weight, GROUP, HEAD_DIM, HEADS)
    begun = begin_heads(frequencies, cursor_value, GROUP, HEAD_DIM, VALUE_IS_KEY, HEADS)
    has_new = (end > 0) & (cursor_value // size % tl.num_programs(1) == split)
    wait_for_inputs()
    let_next_start()  # all its programs run by now, and the next ones' only wait
    x, y = finish_heads(
        projected, begun, weights, k, v, (kv_row + cursor_value) * HEAD_DIM, has_new, eps, GROUP, HEAD_DIM,
        ROUNDED_FIRST, NORM_VALUES, HEADS,
    )  # fmt: skip
    dtype = projected.dtype.element_ty
    if split * size < end:
        tl.debug_barrier()  # other threads load what one thread stored
        queries = repeated(x.to(dtype), TILE), repeated(y.to(dtype), TILE)
        packed = tl.arange(0, TILE)
        mine = packed < GROUP
        loaded = _load_keys(k, v, kv_row, key, key == cursor_value, channel, loaded, HEAD_DIM, VALUES)
        first_part = kv_head * splits * GROUP_ROWS
        while split * size < end:
            start = split * size
            behind = tl.minimum(start + size, end)
            none = tl.zeros((TILE,), tl.float32)
            sums = none + float("-inf"), none, tl.zeros((TILE, VALUES), tl.float32)
            sums = _add_loaded(sums, queries, loaded, scale, (key < behind)[None, :] & mine[:, None])
            for first in range(start + KEYS, behind, KEYS):
                key = first + tl.arange(0, KEYS)
                loaded = _load_keys(k, v, kv_row, key, key < behind, channel, None, HEAD_DIM, VALUES)
                sums = _add_loaded(sums, queries, loaded, scale, (key < behind)[None, :] & mine[:, None])
            highest, total, mixed = sums
            at = first_part + split * GROUP_ROWS + packed
            tl.store(highest_out + at, highest, mask=mine)  # each part of the values stores the same
            tl.store(total_out + at, total, mask=mine)
            value = channel + tl.arange(0, VALUES)
            tl.store(mixed_out + at[:, None] * HEAD_DIM + value[None, :], mixed, mask=mine[:, None])
            split += tl.num_programs(1)
            if split * size < end:
                key = split * size + tl.arange(0, KEYS)
                loaded = _load_keys(k, v, kv_row, key, key < end, channel, None, HEAD_DIM, VALUES)
