"""The kernel ``_attend_window`` of ``attention.py`` for one row, bit for bit. Such a pass waits for launches more than
for bytes, so all that needs no input, keys and values among it, comes before the wait."""

from __future__ import annotations

from ...toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ...toolchain.jit import tl
from .add_splits import Parts
from .attend_window import attend_split
from .new_heads import begin_heads, finish_heads, repeated, weights_of_heads


@early_kernel
def _attend_one_row(
    projected: tl.tensor, q_weight: tl.tensor, k_weight: tl.tensor, frequencies: tl.tensor, sinks: tl.tensor,
    k: tl.tensor, v: tl.tensor, highest_out: tl.tensor, total_out: tl.tensor, mixed_out: tl.tensor, arrivals: tl.tensor,
    out: tl.tensor, cursor: tl.tensor, rows: tl.tensor, capacity: tl.tensor, splits: tl.tensor, eps: tl.tensor,
    scale: tl.tensor,
    GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, VALUE_IS_KEY: tl.constexpr, ROUNDED_FIRST: tl.constexpr,
    NORM_VALUES: tl.constexpr, WINDOW: tl.constexpr, CAUSAL: tl.constexpr, SPLIT: tl.constexpr, TILE: tl.constexpr,
    GROUP_ROWS: tl.constexpr, ADDED: tl.constexpr, HEADS: tl.constexpr, LETS_GO: tl.constexpr,
) -> None:  # fmt: skip
    """A program for each (key head, split). ``HEADS``: see ``weights_of_heads``;
    ``LETS_GO``: ``TargetTiles.lets_go``."""
    kv_head = tl.program_id(0)
    half: tl.constexpr = HEAD_DIM // 2
    lane = tl.arange(0, HEAD_DIM)
    pair = tl.arange(0, half)
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
    weights = None if q_weight is None else weights_of_heads(q_weight, k_weight, GROUP, HEAD_DIM, HEADS)
    begun = begin_heads(frequencies, cursor_value, GROUP, HEAD_DIM, VALUE_IS_KEY, HEADS)
    new_place = start % capacity + cursor_value - start
    new_place = tl.where(new_place < capacity, new_place, new_place - capacity)
    has_new = (start < end) & (start + SPLIT > cursor_value)
    wait_for_inputs()
    if LETS_GO:
        let_next_start()
    x, y = finish_heads(
        projected, begun, weights, k, v, (kv_head * capacity + new_place) * HEAD_DIM, has_new, eps, GROUP, HEAD_DIM,
        ROUNDED_FIRST, NORM_VALUES, HEADS,
    )  # fmt: skip
    dtype = projected.dtype.element_ty
    # Programs without keys stay until here: the compiler would otherwise move all that is used once into the branch.
    if start < end:
        tl.debug_barrier()  # other threads load what one thread stored
        is_new = (key == cursor_value)[:, None]
        new_row = (key * 0 + (kv_head * capacity + new_place) * HEAD_DIM)[:, None]
        attend_split(
            repeated(x.to(dtype), TILE), repeated(y.to(dtype), TILE),
            tl.load(k + new_row + pair[None, :], mask=is_new, other=keys_1),
            tl.load(k + new_row + half + pair[None, :], mask=is_new, other=keys_2),
            tl.load(v + new_row + lane[None, :], mask=is_new, other=values), key, exists,
            Parts(highest_out, total_out, mixed_out), sinks, arrivals, out, cursor_value, num_rows, first_split, end,
            splits, scale, tl.program_id(1), 0, None, None, GROUP, HEAD_DIM, WINDOW, CAUSAL, SPLIT, TILE, GROUP_ROWS,
            ADDED, True,
        )  # fmt: skip
