"""Adds the output of the expert that all rows share to the residual, weighted by each row's gate."""

from __future__ import annotations

from torch import Tensor

from ..shared.rows import add_up, load_row, load_scales, rounded, store_row
from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import MAX_ROWS, power_of_two, tl
from .tiles import ROW_TILES, RowTiles


def reference_add_shared(partials: Tensor, normed: Tensor, gate: Tensor, x: Tensor) -> Tensor:
    """x plus the sums over the first dimension of ``partials``, times the sigmoid of ``normed`` [n, hidden] times
    ``gate`` [1, hidden]."""
    share = (normed.float() @ gate.float().T).sigmoid()
    return x + (partials.sum(0) * share).to(x.dtype)


def add_shared(
    partials: Tensor, normed: Tensor, gate: Tensor, x: Tensor, max_rows: int = MAX_ROWS, tiles: RowTiles = ROW_TILES
) -> None:
    """``reference_add_shared`` in place, of rows x [16, hidden]. ``partials`` fp32 [splits, 16, hidden]. The launch
    just before may write neither x nor ``normed``, and the one behind may not read x before it waits."""
    hidden = x.shape[1]
    _add_shared[(max_rows,)](
        partials, normed, gate, x, HIDDEN=hidden, SPLITS=partials.shape[0], BLOCK=power_of_two(hidden), **tiles.options
    )


@early_kernel
def _add_shared(
    partials: tl.tensor, normed: tl.tensor, gate: tl.tensor, residual: tl.tensor,
    HIDDEN: tl.constexpr, SPLITS: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    at = row * HIDDEN
    scales = load_scales(gate, lane, HIDDEN)
    before = load_row(residual + at, lane, HIDDEN)  # written before the product just before, as is ``normed``
    rows = load_row(normed + at, lane, HIDDEN)
    wait_for_inputs()
    share = 1 / (1 + tl.exp(-tl.sum(rows * scales.to(tl.float32), axis=0)))
    y = rounded(add_up(partials + at, 16 * HIDDEN, lane, HIDDEN, SPLITS) * share, residual)
    let_next_start()
    store_row(residual + at, lane, before + y, HIDDEN)
