"""Asks for a product's first tiles while the launch before still runs, so that memory isn't idle between the two."""

from __future__ import annotations

from ..toolchain.jit import SIMULATED, constexpr_function, jit, tl
from ..weights.matrix import FP8, INT8, Matrix
from .packed import panels_from


@constexpr_function
def lines_of(depth: int, step: int, steps: int, rows: int, row_bytes: int) -> int:
    """How many lines of 128 bytes so many neighbouring rows have of the first ``steps`` steps over a ``depth``; of one,
    where there are no more. ``row_bytes``: of 32 numbers of a row."""
    return rows * step * (steps if steps * step < depth else 1) * row_bytes // (32 * 128)


@constexpr_function
def at_least(count: int) -> int:
    """The next power of two."""
    return 1 << (count - 1).bit_length()


@jit
def ask_early(
    weight: Matrix, first: tl.tensor, column: tl.tensor, start: tl.tensor, asks: tl.tensor, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, STEPS: tl.constexpr, INTER: tl.constexpr = 0,
) -> None:  # fmt: skip
    """Asks into L2 what the first STEPS steps of a product read: of the weight's rows from ``first`` + ``column`` on,
    BLOCK_N of them, or with INTER half of them and as many that lie INTER further on; from the depth ``start`` on. Only
    a program that ``asks``. Without a branch: every program must be seen to wait."""
    if not SIMULATED:
        if weight.FORMAT >= FP8:
            pointers = _of_panels(weight, first, column, start, BLOCK_N, BLOCK_K, STEPS, INTER)
        else:
            pointers = _of_rows(weight, first, column, start, BLOCK_N, BLOCK_K, STEPS, INTER)
        tl.inline_asm_elementwise(
            """{
            .reg .pred asks;
            setp.ne.b32 asks, $2, 0;
            @asks prefetch.global.L2 [$1];
            mov.u32 $0, 0;
            }""",
            "=r,l,r",
            [pointers, tl.zeros(pointers.shape, tl.int32) + asks],
            dtype=tl.int32,
            is_pure=False,
            pack=1,
        )


@jit
def _of_panels(
    weight: Matrix, first: tl.tensor, column: tl.tensor, start: tl.tensor, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    STEPS: tl.constexpr, INTER: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """Where lines begin, int64 [panels, lines], of a weight in panels of 16 rows."""
    per_byte: tl.constexpr = 1 if weight.FORMAT == FP8 else 2
    lines: tl.constexpr = lines_of(weight.K, BLOCK_K, STEPS, 16, 32 // per_byte)
    panel = tl.min(tl.reshape(panels_from(column, BLOCK_N, INTER), [BLOCK_N // 16, 16]), axis=1)
    panel = tl.minimum(panel, weight.N // 16 - 1)
    line = start * (16 // per_byte) + tl.minimum(tl.arange(0, at_least(lines)), lines - 1) * 128
    line = tl.minimum(line, 16 * weight.K // per_byte - 128)  # some splits lie past the end
    at = first * (weight.K // per_byte) + panel * (16 * weight.K // per_byte)
    return (weight.data + at[:, None] + line[None, :]).to(tl.int64)


@jit
def _of_rows(
    weight: Matrix, first: tl.tensor, column: tl.tensor, start: tl.tensor, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    STEPS: tl.constexpr, INTER: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """The same, int64 [rows, lines], of a weight that lies row by row."""
    size: tl.constexpr = 1 if weight.FORMAT == INT8 else 2
    lines: tl.constexpr = lines_of(weight.K, BLOCK_K, STEPS, 1, 32 * size)
    lane = tl.arange(0, BLOCK_N)
    if INTER == 0:
        row = tl.minimum(column + lane, weight.N - 1)
    else:
        half: tl.constexpr = BLOCK_N // 2
        row = tl.minimum(column + lane % half, INTER - 1) + lane // half * INTER
    line = start + tl.minimum(tl.arange(0, at_least(lines)), lines - 1) * (128 // size)
    line = tl.minimum(line, weight.K - 128 // size)  # some splits lie past the end
    return (weight.data + (first + row)[:, None] * weight.K + line[None, :]).to(tl.int64)
