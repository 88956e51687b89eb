"""The convolutions of DFlash 2 around a draft layer's branches: they mix each row of a block with the one before, by
weights that the row itself chooses for groups of channels. Nothing before the block is seen."""

from __future__ import annotations

from torch import Tensor

from ..shared.rows import add_up, inverse_rms, load_row, load_scales, rounded, scale_row, store_row
from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import MAX_ROWS, jit, power_of_two, tl
from .tiling.tiles import ROW_TILES

BEFORE, BEHIND = 0, 1
"""The sides of a branch at which a convolution may stand."""
CONV_TAPS = 2
"""How many rows the convolution sees: a row, and the one before."""


def reference_block_conv(z: Tensor, chosen: Tensor, base: Tensor, side: int) -> Tensor:
    """The convolution of rows z [n, hidden] of a block, with ``chosen`` [n, 2 * taps * groups] and ``base`` [2, taps,
    hidden]: a tap's weight is what the base says plus what the row chooses for the channel's group. fp32 inside,
    rounded once."""
    n, hidden = z.shape
    weights = chosen.float().view(n, 2, CONV_TAPS, -1)[:, side]
    weights = base[side].float() + weights.repeat_interleave(hidden // weights.shape[-1], -1)
    wide = z.float()
    out = wide * weights[:, 0]
    out[1:] += wide[:-1] * weights[1:, 1]
    return out.to(z.dtype)


def block_conv(z: Tensor, chosen: Tensor, base: Tensor, out: Tensor) -> None:
    """``reference_block_conv`` before a branch, of 16 rows into ``out`` [16, hidden]."""
    hidden = z.shape[1]
    _block_conv[(MAX_ROWS,)](
        z, chosen, base, out, HIDDEN=hidden, GROUPS=_groups(chosen), BLOCK=power_of_two(hidden), **ROW_TILES.options
    )


def conv_and_norm(
    partials: Tensor, chosen: Tensor, base: Tensor, x: Tensor, weight: Tensor, eps: float, normed: Tensor
) -> None:
    """16 rows x in place: x plus the convolved output of a branch (``partials`` fp32 [splits, 16, hidden], added up);
    and ``normed``, that sum normed. The launch just before may not write x."""
    hidden = x.shape[1]
    _conv_and_norm[(MAX_ROWS,)](
        partials, chosen, base, x, weight, eps, normed,
        HIDDEN=hidden, GROUPS=_groups(chosen), SPLITS=len(partials), BLOCK=power_of_two(hidden), **ROW_TILES.options,
    )  # fmt: skip


def _groups(chosen: Tensor) -> int:
    return chosen.shape[1] // (2 * CONV_TAPS)


@jit
def weight_of_tap(
    chosen: tl.tensor, base: tl.tensor, row: tl.tensor, lane: tl.tensor, SIDE: tl.constexpr, TAP: tl.constexpr,
    HIDDEN: tl.constexpr, GROUPS: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    there = lane < HIDDEN
    group = lane // (HIDDEN // GROUPS)
    own = tl.load(chosen + row * 4 * GROUPS + (2 * SIDE + TAP) * GROUPS + group, mask=there, other=0.0)
    return own.to(tl.float32) + tl.load(base + (2 * SIDE + TAP) * HIDDEN + lane, mask=there, other=0.0).to(tl.float32)


@early_kernel
def _block_conv(
    z: tl.tensor, chosen: tl.tensor, base: tl.tensor, out: tl.tensor,
    HIDDEN: tl.constexpr, GROUPS: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    wait_for_inputs()
    let_next_start()
    now = load_row(z + row * HIDDEN, lane, HIDDEN) * weight_of_tap(chosen, base, row, lane, 0, 0, HIDDEN, GROUPS)
    if row > 0:
        before = load_row(z + (row - 1) * HIDDEN, lane, HIDDEN)
        now += before * weight_of_tap(chosen, base, row, lane, 0, 1, HIDDEN, GROUPS)
    store_row(out + row * HIDDEN, lane, now, HIDDEN)


@early_kernel
def _conv_and_norm(
    partials: tl.tensor, chosen: tl.tensor, base: tl.tensor, residual: tl.tensor, weight: tl.tensor, eps: tl.tensor,
    normed: tl.tensor,
    HIDDEN: tl.constexpr, GROUPS: tl.constexpr, SPLITS: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    at = row * HIDDEN
    scales = load_scales(weight, lane, HIDDEN)
    x = load_row(residual + at, lane, HIDDEN)  # written before the product just before
    wait_for_inputs()
    let_next_start()
    y = rounded(add_up(partials + at, 16 * HIDDEN, lane, HIDDEN, SPLITS), normed)
    y *= weight_of_tap(chosen, base, row, lane, 1, 0, HIDDEN, GROUPS)
    if row > 0:
        before = rounded(add_up(partials + at - HIDDEN, 16 * HIDDEN, lane, HIDDEN, SPLITS), normed)
        y += before * weight_of_tap(chosen, base, row, lane, 1, 1, HIDDEN, GROUPS)
    x = rounded(x + rounded(y, normed), normed)
    out = scale_row(x, inverse_rms(x, eps, HIDDEN), scales, True)
    store_row(residual + at, lane, x, HIDDEN)
    store_row(normed + at, lane, out, HIDDEN)
