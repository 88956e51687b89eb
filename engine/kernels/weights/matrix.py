"""Tiles of a weight of any kind, in the dtype in which they are multiplied. Kernels take ``weight.values,
weight.scales, FORMAT=weight.format`` and hand them on as a ``Matrix`` that is constructed in the call: in a local
variable its constants would become numbers."""

from __future__ import annotations

from typing import NamedTuple

from ..toolchain.jit import HAS_TRITON, constexpr_function, jit, tl
from . import fp8, int4, int8, mxfp4

INT8 = tl.constexpr(int8.INT8) if HAS_TRITON else None
FP8 = tl.constexpr(fp8.FP8) if HAS_TRITON else None
MXFP4 = tl.constexpr(mxfp4.MXFP4) if HAS_TRITON else None
"""Formats from ``FP8`` on are packed: FP8, MXFP4, and INT4, whose number is that of its groups. Behind FP8 they have 4
bits. See ``decode/products/packed.py``."""


class Matrix(NamedTuple):
    """N rows of a weight of depth K, from some row on: an expert's, or the gate's."""

    data: tl.tensor
    scales: tl.tensor
    """The scales of its rows or groups; None where the format has none."""
    N: tl.constexpr
    K: tl.constexpr
    FORMAT: tl.constexpr


@constexpr_function
def group_of(weight_format: int) -> int:
    """How many neighbours share a scale in a format of 4 bits."""
    return mxfp4.GROUP if weight_format == mxfp4.MXFP4 else weight_format


@jit
def load_factor(
    weight: Matrix, first: tl.tensor, columns: tl.tensor, at: tl.tensor, x: tl.tensor, ALIGNED: tl.constexpr
) -> tl.tensor:
    """A tile [columns, at] of a weight, to multiply rows x by; rows are counted from ``first``. ALIGNED: no tile
    crosses an edge. Sums with some formats need ``scaled``."""
    tl.static_assert(weight.FORMAT < FP8, "packed weights have products of their own")
    pointers = (weight.data + first * weight.K) + columns[:, None] * weight.K + at[None, :]
    if ALIGNED:
        tile = tl.load(pointers)
    else:
        tile = tl.load(pointers, mask=(columns[:, None] < weight.N) & (at[None, :] < weight.K), other=0.0)
    if weight.FORMAT == INT8:
        tile = int8.int8_factor(tile, x)
    return tile


@jit
def scaled(total: tl.tensor, weight: Matrix, first: tl.tensor, columns: tl.tensor) -> tl.tensor:
    """Sums [rows, columns] times the scales of the weight's rows, where the format has one for each row."""
    if weight.FORMAT == INT8:
        total *= tl.load(weight.scales + first + columns, mask=columns < weight.N, other=0.0)[None, :]
    return total


@jit
def eight_numbers(
    words: tl.tensor, scale: tl.tensor, x: tl.tensor, weight: Matrix
) -> tuple[tl.tensor, tl.tensor, tl.tensor, tl.tensor, tl.tensor, tl.tensor, tl.tensor, tl.tensor]:
    """Of words, int32 [4, 8, parts, rows / 8, words], of a weight of 4 bits four neighbours among the first 16 numbers
    of their blocks and four among the second, times their scales, in the dtype of rows x. Sums need ``restored``."""
    if weight.FORMAT == MXFP4:
        steps = tl.broadcast_to(mxfp4.mxfp4_steps(scale)[:, :, :, :, None], words.shape)
        return mxfp4.mxfp4_words(words, steps, x)  # type: ignore[no-any-return]
    else:
        return int4.int4_scaled(words, scale, x)  # type: ignore[no-any-return]


@jit
def two_numbers(
    words: tl.tensor, pair: tl.tensor, turn: tl.tensor, scale: tl.tensor, x: tl.tensor, FORMAT: tl.constexpr
) -> tuple[tl.tensor, tl.tensor]:
    """The first and the second of pairs of neighbours [rows, pairs] of a weight of 4 bits, times their scales
    [rows, blocks of 32], in the dtype of rows x. ``words``: the one in which each ``pair`` of a row lies; ``turn``: how
    many bits from the lowest of the word's halves, where they are nibbles. Sums need ``restored``."""
    if FORMAT == MXFP4:
        kind = pair // 8 % 2 * 2 + pair % 2
        return mxfp4.mxfp4_pairs(words, kind, _for_each_pair(mxfp4.mxfp4_steps(scale)), x)  # type: ignore[no-any-return]
    elif scale.dtype == tl.bfloat16:
        steps, _, offset = int4.int4_steps(scale)
        return int4.int4_pairs(words, turn, _for_each_pair(steps), _for_each_pair(offset), x)  # type: ignore[no-any-return]
    else:
        scale = scale.to(tl.float32) * 2.0**-31
        high = scale.to(tl.bfloat16)
        rest = (scale - high.to(tl.float32)).to(tl.bfloat16)
        return int4.int4_wide_pairs(words, turn, _for_each_pair(high), _for_each_pair(rest), x)  # type: ignore[no-any-return]


@jit
def _for_each_pair(scale: tl.tensor) -> tl.tensor:
    """Scales [rows, blocks of 32], once for every pair of numbers."""
    spread = tl.broadcast_to(scale[:, :, None], [scale.shape[0], scale.shape[1], 16])
    return spread.reshape(scale.shape[0], 16 * scale.shape[1])


@jit
def restored(total: tl.tensor, FORMAT: tl.constexpr) -> tl.tensor:
    """Undoes the factor that a format of 4 bits leaves in products, on their sums."""
    if FORMAT == MXFP4:
        return mxfp4.lifted(total)
    else:
        return int4.raised(total)
