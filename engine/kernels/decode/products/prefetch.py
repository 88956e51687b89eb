"""Prefetches into L2 what a kernel reads first while the launch before still runs, so that memory isn't idle between
the two: a product's first tiles, attention's first keys and values."""

from __future__ import annotations

from ...toolchain.jit import SIMULATED, constexpr_function, jit, power_of_two, tl
from ...weights.matrix import INT8, Matrix


@constexpr_function
def lines_of(depth: int, step: int, steps: int, size: int) -> int:
    """How many lines of 128 bytes the first ``steps`` steps of a row have, over a ``depth`` of numbers of ``size``
    bytes; those of one step, where there are no more."""
    return -(-step * (steps if steps * step < depth else 1) * size // 128)


@jit
def prefetch_into_l2(addresses: tl.tensor, asks: tl.tensor) -> None:
    """Prefetches the lines of 128 bytes that begin at ``addresses``, int64, where ``asks``, int32, isn't 0. It has no
    branch, since it must be plain that every program waits."""
    tl.inline_asm_elementwise(
        """{
        .reg .pred asks;
        setp.ne.b32 asks, $2, 0;
        @asks prefetch.global.L2 [$1];
        mov.u32 $0, 0;
        }""",
        "=r,l,r",
        [addresses, asks],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )


@jit
def prefetch(
    weight: Matrix, first: tl.tensor, column: tl.tensor, start: tl.tensor, asks: tl.tensor, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, STEPS: tl.constexpr, INTER: tl.constexpr = 0,
) -> None:  # fmt: skip
    """Prefetches what the first STEPS steps of a product read of a weight that isn't packed: BLOCK_N of its rows from
    ``first`` + ``column`` on, or with INTER half of them and as many that lie INTER further on; from depth ``start``
    on. Only programs with ``asks`` do."""
    if not SIMULATED:
        pointers = _of_rows(weight, first, column, start, BLOCK_N, BLOCK_K, STEPS, INTER)
        prefetch_into_l2(pointers, tl.zeros(pointers.shape, tl.int32) + asks)


@jit
def _of_rows(
    weight: Matrix, first: tl.tensor, column: tl.tensor, start: tl.tensor, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    STEPS: tl.constexpr, INTER: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """The addresses of the lines of memory that ``prefetch`` asks for, int64 [rows, lines]."""
    size: tl.constexpr = 1 if weight.FORMAT == INT8 else 2
    lines: tl.constexpr = lines_of(weight.K, BLOCK_K, STEPS, size)
    lane = tl.arange(0, BLOCK_N)
    if INTER == 0:
        row = tl.minimum(column + lane, weight.N - 1)
    else:
        half: tl.constexpr = BLOCK_N // 2
        row = tl.minimum(column + lane % half, INTER - 1) + lane // half * INTER
    line = start + tl.minimum(tl.arange(0, power_of_two(lines)), lines - 1) * (128 // size)
    line = tl.minimum(line, weight.K - 128 // size)  # some splits lie past the end
    return (weight.data + (first + row)[:, None] * weight.K + line[None, :]).to(tl.int64)
