"""Fetches the embeddings of a prompt's tokens from a table that a GPU reads where it lies, be it in the machine's
memory. Rounds need none of this: their kernels load rows themselves."""

from __future__ import annotations

from torch import Tensor

from ..shared.rows import load_scales
from ..toolchain.jit import jit, power_of_two, tl


def gather(table: Tensor, ids: Tensor) -> Tensor:
    """``table[ids]``: [n, hidden] on the device of ``ids``, int64 [n]. ``table`` [vocab, hidden] lies there, too, or in
    host memory that is registered with CUDA."""
    hidden = table.shape[1]
    rows = table.new_empty(len(ids), hidden, device=ids.device)
    _gather[(len(ids),)](table, ids, rows, HIDDEN=hidden, BLOCK=power_of_two(hidden), num_warps=8)
    return rows


@jit
def _gather(
    table: tl.tensor, ids: tl.tensor, rows: tl.tensor, HIDDEN: tl.constexpr, BLOCK: tl.constexpr
) -> None:  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    token = tl.load(ids + row)
    tl.store(rows + row * HIDDEN + lane, load_scales(table + token * HIDDEN, lane, HIDDEN), mask=lane < HIDDEN)
