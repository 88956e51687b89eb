"""Products of at most 16 rows with a weight: reading the weight once, at the speed of memory, is all that matters.

The kernels compute all 16 rows of their tile whatever the number of live rows: a row's sums never depend on the
others, and no program waits for a counter before its first load. ``max_rows`` is fixed where a launch is recorded:
rows from there on are neither read nor written.

Inputs are normed already: the kernels of ``norm.py`` have whole rows in registers when they add to the residual, so
the next norm costs nothing there, and the products can copy their inputs straight into shared memory.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import MAX_ROWS, cdiv, constexpr_function, dot, jit, tl
from .quantised import Weight, values_and_scales
from .tiles import Tiles

Activation = Literal["gelu_tanh", "silu"]


def reference_project(x: Tensor, weight: Tensor) -> Tensor:
    """fp32 products [n, columns] of rows x [n, depth] with a weight [columns, depth]."""
    return F.linear(x.float(), weight.float())


def reference_gate_up(x: Tensor, weight: Tensor, activation: Activation) -> Tensor:
    """act(gate) * up, [n, inter] in x's dtype, for a weight [2 * inter, depth] with the gate's rows first.

    Gate and up stay fp32 until their product is rounded, once.
    """
    gate, up = reference_project(x, weight).chunk(2, dim=-1)
    gate = F.silu(gate) if activation == "silu" else F.gelu(gate, approximate="tanh")
    return (gate * up).to(x.dtype)


def partial_sums(tiles: Tiles, columns: int, device: torch.device) -> Tensor:
    """Where ``project`` leaves the sums of its splits: fp32 [splits, 16, columns]."""
    return torch.zeros(tiles.splits, MAX_ROWS, columns, dtype=torch.float32, device=device)


def project(x: Tensor, weight: Weight, out: Tensor, tiles: Tiles, max_rows: int = MAX_ROWS) -> None:
    """Products of rows x [16, depth] with a weight [columns, depth].

    ``out`` is [16, columns] of any float dtype where ``tiles.splits`` is 1, or ``partial_sums``, whose sum over the
    first dimension, in order, is the result.
    """
    values, scales = values_and_scales(weight)
    columns, depth = values.shape
    assert x.shape[1] == depth and out.numel() == tiles.splits * MAX_ROWS * columns
    assert x.is_contiguous() and values.is_contiguous() and out.is_contiguous()
    _project[(cdiv(columns, tiles.columns), tiles.splits)](
        x,
        values,
        scales,
        out,
        max_rows,
        N=columns,
        K=depth,
        SPLITS=tiles.splits,
        BLOCK_N=tiles.columns,
        BLOCK_K=tiles.depth,
        AHEAD=tiles.ahead,
        num_warps=tiles.warps,
        num_stages=tiles.stages,
    )


def gate_up(
    x: Tensor, weight: Weight, out: Tensor, activation: Activation, tiles: Tiles, max_rows: int = MAX_ROWS
) -> None:
    """``out`` [16, inter] = act(gate) * up of rows x [16, depth]; ``weight`` [2 * inter, depth], the gate first."""
    values, scales = values_and_scales(weight)
    inter, depth = values.shape[0] // 2, values.shape[1]
    assert x.shape[1] == depth and out.shape[1] == inter
    assert x.is_contiguous() and values.is_contiguous() and out.is_contiguous()
    _gate_up[(cdiv(inter, tiles.columns),)](
        x,
        values,
        scales,
        out,
        max_rows,
        INTER=inter,
        K=depth,
        SILU=activation == "silu",
        BLOCK_N=tiles.columns,
        BLOCK_K=tiles.depth,
        AHEAD=tiles.ahead,
        num_warps=tiles.warps,
        num_stages=tiles.stages,
    )


@jit
def load_weights(
    weight: tl.tensor, columns: tl.tensor, at: tl.tensor, N: tl.constexpr, K: tl.constexpr, ALIGNED: tl.constexpr
) -> tl.tensor:
    """A tile [columns, at] of a weight [N, K]; ALIGNED says that no tile reaches past its edges."""
    pointers = weight + columns[:, None] * K + at[None, :]
    if ALIGNED:
        return tl.load(pointers)
    return tl.load(pointers, mask=(columns[:, None] < N) & (at[None, :] < K), other=0.0)


@jit
def as_factor(tile: tl.tensor, x: tl.tensor) -> tl.tensor:
    """A tile of a weight as what rows x are multiplied by. Of 8 bits that is exact: bf16 holds every integer to 256."""
    if tile.dtype == tl.int8:
        tile = tile.to(tl.float32).to(x.dtype.element_ty)
    return tile


@jit
def scaled(total: tl.tensor, scales: tl.tensor, columns: tl.tensor, N: tl.constexpr) -> tl.tensor:
    """Sums [rows, columns] with a weight in 8 bits, times the scales [N] of its rows; others as they are."""
    if scales is not None:
        total *= tl.load(scales + columns, mask=columns < N, other=0.0)[None, :]
    return total


@jit
def load_rows(x: tl.tensor, max_rows: tl.tensor, at: tl.tensor, K: tl.constexpr, ALIGNED: tl.constexpr) -> tl.tensor:
    """Columns ``at`` of rows x [16, K]; rows from ``max_rows`` on are zero."""
    row = tl.arange(0, 16)[:, None]
    live = row < max_rows
    return tl.load(x + row * K + at[None, :], mask=live if ALIGNED else live & (at[None, :] < K), other=0.0)


@constexpr_function
def last_asked(depth: int, step: int, ahead: int) -> int:
    """Where a loop over ``depth`` stands when it asks for its last tiles, ``ahead`` steps before it multiplies them."""
    return max(0, -(-depth // step) - 1 - ahead) * step


@jit
def multiply_rows(
    x: tl.tensor,
    weight: tl.tensor,
    columns: tl.tensor,
    start: tl.tensor,
    max_rows: tl.tensor,
    N: tl.constexpr,
    K: tl.constexpr,
    DEPTH: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    AHEAD: tl.constexpr,
    SPLITS: tl.constexpr = 1,
) -> tl.tensor:
    """fp32 [16, BLOCK_N]: rows times the weight's rows ``columns``, summed over depth start .. start + DEPTH - 1.

    Lets the next kernel start in the step that asks for the last tiles, AHEAD steps before they are multiplied.
    """
    even: tl.constexpr = DEPTH % BLOCK_K == 0 and K == DEPTH * SPLITS  # some splits may lie past the end of the depth
    aligned: tl.constexpr = even and N % BLOCK_N == 0
    total = tl.zeros([16, BLOCK_N], dtype=tl.float32)
    for step in tl.range(0, DEPTH, BLOCK_K):
        if step == last_asked(DEPTH, BLOCK_K, AHEAD):
            let_next_start()
        at = start + step + tl.arange(0, BLOCK_K)
        tile = as_factor(load_weights(weight, columns, at, N, K, aligned), x)
        total = dot(load_rows(x, max_rows, at, K, even), tile.T, total)
    return total


@jit
def project_tile(
    x: tl.tensor,
    weight: tl.tensor,
    out: tl.tensor,
    tile: tl.tensor,
    split: tl.tensor,
    max_rows: tl.tensor,
    N: tl.constexpr,
    K: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    AHEAD: tl.constexpr,
    scales: tl.tensor = None,
) -> None:
    """One program's part of ``project``."""
    depth: tl.constexpr = (K + BLOCK_K * SPLITS - 1) // (BLOCK_K * SPLITS) * BLOCK_K
    columns = tile * BLOCK_N + tl.arange(0, BLOCK_N)
    total = multiply_rows(x, weight, columns, split * depth, max_rows, N, K, depth, BLOCK_N, BLOCK_K, AHEAD, SPLITS)
    total = scaled(total, scales, columns, N)
    row = tl.arange(0, 16)[:, None]
    at = out + (split * 16 + row) * N + columns[None, :]
    tl.store(at, total.to(out.dtype.element_ty), mask=(row < max_rows) & (columns[None, :] < N))


@early_kernel
def _project(
    x: tl.tensor,
    weight: tl.tensor,
    scales: tl.tensor,
    out: tl.tensor,
    max_rows: tl.tensor,
    N: tl.constexpr,
    K: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    AHEAD: tl.constexpr,
) -> None:
    wait_for_inputs()
    tile, split = tl.program_id(0), tl.program_id(1)
    project_tile(x, weight, out, tile, split, max_rows, N, K, SPLITS, BLOCK_N, BLOCK_K, AHEAD, scales)


@jit
def activate(gate: tl.tensor, SILU: tl.constexpr) -> tl.tensor:
    """SiLU or tanh-GELU, in fp32. tanh is written as a sigmoid: (1 + tanh y) / 2 = sigmoid(2 y)."""
    if SILU:
        return gate * tl.sigmoid(gate)
    return gate * tl.sigmoid(1.5957691216057308 * (gate + 0.044715 * gate * gate * gate))


@jit
def multiply_gate_up(
    x: tl.tensor,
    weight: tl.tensor,
    columns: tl.tensor,
    start: tl.tensor,
    max_rows: tl.tensor,
    INTER: tl.constexpr,
    K: tl.constexpr,
    DEPTH: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    AHEAD: tl.constexpr,
    SPLITS: tl.constexpr = 1,
) -> tuple[tl.tensor, tl.tensor]:
    """``multiply_rows`` for the gate's rows of a weight [2 * INTER, K] and for those of up, in one loop."""
    even: tl.constexpr = DEPTH % BLOCK_K == 0 and K == DEPTH * SPLITS
    aligned: tl.constexpr = even and INTER % BLOCK_N == 0
    gate = tl.zeros([16, BLOCK_N], dtype=tl.float32)
    up = tl.zeros([16, BLOCK_N], dtype=tl.float32)
    for step in tl.range(0, DEPTH, BLOCK_K):
        if step == last_asked(DEPTH, BLOCK_K, AHEAD):
            let_next_start()
        at = start + step + tl.arange(0, BLOCK_K)
        gate_tile = as_factor(load_weights(weight, columns, at, INTER, K, aligned), x)
        up_tile = as_factor(load_weights(weight + INTER * K, columns, at, INTER, K, aligned), x)
        rows = load_rows(x, max_rows, at, K, even)
        gate = dot(rows, gate_tile.T, gate)
        up = dot(rows, up_tile.T, up)
    return gate, up


@early_kernel
def _gate_up(
    x: tl.tensor,
    weight: tl.tensor,
    scales: tl.tensor,
    out: tl.tensor,
    max_rows: tl.tensor,
    INTER: tl.constexpr,
    K: tl.constexpr,
    SILU: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    AHEAD: tl.constexpr,
) -> None:
    wait_for_inputs()
    depth: tl.constexpr = (K + BLOCK_K - 1) // BLOCK_K * BLOCK_K
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    gate, up = multiply_gate_up(x, weight, columns, 0, max_rows, INTER, K, depth, BLOCK_N, BLOCK_K, AHEAD)
    gate = scaled(gate, scales, columns, INTER)
    up = scaled(up, scales, INTER + columns, 2 * INTER)
    act = activate(gate, SILU) * up
    row = tl.arange(0, 16)[:, None]
    mask = (row < max_rows) & (columns[None, :] < INTER)
    tl.store(out + row * INTER + columns[None, :], act.to(out.dtype.element_ty), mask=mask)
