"""Gathers what an MTP assistant takes from a round before it drafts: the hidden state behind the newest committed row,
where the keys end that it sees, and the keys of a window in order."""

from __future__ import annotations

from torch import Tensor

from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import cdiv, power_of_two, tl

PLACES = 16
"""How many slots of a window a program copies."""


def keep_last(features: Tensor, rows: Tensor, last_row: Tensor) -> None:
    """Copies the last of the first ``rows`` (int32 [1]) features [>= rows, columns] to ``last_row`` [1, columns], which
    stays as it is if ``rows`` is 0."""
    columns = features.shape[1]
    _keep_last[(1,)](features, rows, last_row, COLUMNS=columns, BLOCK=power_of_two(columns), num_warps=8)


def begin_draft(last_row: Tensor, cursor: Tensor, hidden: Tensor, last: Tensor) -> None:
    """Copies ``last_row`` to the first row of ``hidden`` [16, columns], and the newest committed position to ``last``,
    int32 [1] as the cursor."""
    columns = last_row.shape[1]
    _begin_draft[(1,)](last_row, cursor, hidden, last, COLUMNS=columns, BLOCK=power_of_two(columns), num_warps=8)


def gather_window(
    k: Tensor, v: Tensor, cursor: Tensor, window: int, out_k: Tensor, out_v: Tensor, last: Tensor
) -> None:
    """Copies the rows of ``k`` and ``v``, rings [kv_heads, capacity, head_dim], from the slots that hold the positions
    before ``cursor`` at a distance below ``window``, in their order, to the beginning of ``out_k`` and ``out_v``
    [kv_heads, window - 1, head_dim]; rows behind them are undefined. ``last``, int32 [1], becomes the index of the last
    row."""
    kv_heads, capacity, head_dim = k.shape
    _gather_window[(kv_heads, cdiv(window - 1, PLACES))](
        k, v, cursor, out_k, out_v, last, capacity, WINDOW=window, HEAD_DIM=head_dim, PLACES=PLACES, num_warps=4
    )


@early_kernel
def _keep_last(
    features: tl.tensor, rows: tl.tensor, last_row: tl.tensor, COLUMNS: tl.constexpr, BLOCK: tl.constexpr
) -> None:
    wait_for_inputs()
    lane = tl.arange(0, BLOCK)
    inside = lane < COLUMNS
    count = tl.load(rows)
    row = tl.load(features + tl.maximum(count - 1, 0) * COLUMNS + lane, mask=inside, other=0.0)
    let_next_start()
    tl.store(last_row + lane, row, mask=inside & (count > 0))


@early_kernel
def _begin_draft(
    last_row: tl.tensor,
    cursor: tl.tensor,
    hidden: tl.tensor,
    last: tl.tensor,
    COLUMNS: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    wait_for_inputs()
    lane = tl.arange(0, BLOCK)
    inside = lane < COLUMNS
    row = tl.load(last_row + lane, mask=inside, other=0.0)
    position = tl.load(cursor)
    let_next_start()
    tl.store(hidden + lane, row, mask=inside)
    tl.store(last, tl.maximum(position - 1, 0))


@early_kernel
def _gather_window(
    k: tl.tensor, v: tl.tensor, cursor: tl.tensor, out_k: tl.tensor, out_v: tl.tensor, last: tl.tensor,
    capacity: tl.tensor, WINDOW: tl.constexpr, HEAD_DIM: tl.constexpr, PLACES: tl.constexpr,
) -> None:  # fmt: skip
    """The kernel of ``gather_window``: a program for each (key head, part of the window)."""
    wait_for_inputs()
    kv_head = tl.program_id(0)
    slot = tl.program_id(1) * PLACES + tl.arange(0, PLACES)
    lane = tl.arange(0, HEAD_DIM)[None, :]
    cursor_value = tl.load(cursor)
    first = tl.maximum(cursor_value - WINDOW + 1, 0)
    source = (kv_head * capacity + (first + slot) % capacity)[:, None] * HEAD_DIM + lane
    keys = tl.load(k + source)
    values = tl.load(v + source)
    let_next_start()
    target = (kv_head * (WINDOW - 1) + slot)[:, None] * HEAD_DIM + lane
    inside = (slot < WINDOW - 1)[:, None]
    tl.store(out_k + target, keys, mask=inside)
    tl.store(out_v + target, values, mask=inside)
    if (kv_head == 0) & (tl.program_id(1) == 0):
        tl.store(last, tl.maximum(cursor_value - first - 1, 0))
