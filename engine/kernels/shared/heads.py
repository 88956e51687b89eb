"""Norm and rotary embedding of attention heads inside kernels, on the two halves of a head."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ..toolchain.jit import jit, tl


@dataclass(frozen=True, slots=True)
class HeadNorms:
    """How an attention layer's heads are normed before they turn: ``q``, ``k`` weights [head_dim], or neither;
    ``rounded_first``: the drafters' order (``reference/norm.py``). Values are normed without weight (Gemma 4) or taken
    as they are (DFlash)."""

    q: Tensor | None
    k: Tensor | None
    eps: float
    rounded_first: bool
    norm_values: bool


@jit
def cos_sin(angle: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """Cosine and sine to 1e-7, for fp32 angles from 0 to a million. The library's branches for larger angles were two
    thirds of a small kernel's instructions, and took local memory."""
    # The nearest quarter turn: at this magnitude the last bit of an fp32 number is worth 1.
    shifted = tl.fma(angle, 0.6366197723675814, 12582912.0)
    quarter = shifted.to(tl.int32, bitcast=True)
    count = shifted - 12582912.0
    # Minus that many times pi / 2, in three parts (Cody and Waite), so short that fused products lose nothing.
    angle = tl.fma(count, -1.5703125, angle)
    angle = tl.fma(count, -4.83751296997070312e-4, angle)
    angle = tl.fma(count, -7.549789954891e-8, angle)
    square = angle * angle  # below: Cephes' polynomials between -pi / 4 and pi / 4
    odd = ((-1.9515295891e-4 * square + 8.3321608736e-3) * square - 1.6666654611e-1) * square * angle + angle
    even = (2.443315711809948e-5 * square - 1.388731625493765e-3) * square + 4.166664568298827e-2
    even = tl.fma(even * square, square, tl.fma(square, -0.5, 1.0))
    turned = (quarter & 1) != 0
    cos = tl.where(turned, odd, even)
    sin = tl.where(turned, even, odd)
    return tl.where(((quarter + 1) & 2) != 0, -cos, cos), tl.where((quarter & 2) != 0, -sin, sin)


@jit
def norm_pairs(
    x: tl.tensor,
    y: tl.tensor,
    inverse: tl.tensor,
    x_weight: tl.tensor,
    y_weight: tl.tensor,
    ROUNDED_FIRST: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:
    """The halves of a head, normed, given its inverse RMS: fp32, rounded to the weights' dtype."""
    x *= inverse
    y *= inverse
    if ROUNDED_FIRST:
        x = x.to(x_weight.dtype).to(tl.float32)
        y = y.to(y_weight.dtype).to(tl.float32)
    x *= x_weight.to(tl.float32)
    y *= y_weight.to(tl.float32)
    return x.to(x_weight.dtype).to(tl.float32), y.to(y_weight.dtype).to(tl.float32)


@jit
def turn_pairs(x: tl.tensor, y: tl.tensor, cos: tl.tensor, sin: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """Each pair of a head's halves turned by an angle's cosine and sine, fp32; fusing is spelt out, or kernels differ
    in the last bit."""
    return tl.fma(x, cos, -(y * sin)), tl.fma(y, cos, x * sin)


@jit
def load_halves(head: tl.tensor, HEAD_DIM: tl.constexpr) -> tuple[tl.tensor, tl.tensor]:
    """The halves, [N, HEAD_DIM / 2] each, of the heads that ``head`` [N] points to."""
    half: tl.constexpr = HEAD_DIM // 2
    address = head[:, None] + tl.arange(0, half)[None, :]
    return tl.load(address), tl.load(address + half)


@jit
def store_halves(head: tl.tensor, x: tl.tensor, y: tl.tensor, mask: tl.tensor, HEAD_DIM: tl.constexpr) -> None:
    half: tl.constexpr = HEAD_DIM // 2
    address = head[:, None] + tl.arange(0, half)[None, :]
    tl.store(address, x.to(head.dtype.element_ty), mask=mask[:, None])
    tl.store(address + half, y.to(head.dtype.element_ty), mask=mask[:, None])


@jit
def sum_in_pairs(x: tl.tensor, SIZE: tl.constexpr) -> tl.tensor:
    """Sums [N] of rows [N, SIZE]: first of neighbours, then of those sums. (The order of ``tl.sum`` depends on the
    tile's rows.)"""
    for level in tl.static_range(1, 16):
        if SIZE >> level > 0:
            x = tl.sum(tl.reshape(x, (x.shape[0], SIZE >> level, 2)), axis=2)
    return tl.reshape(x, (x.shape[0],))


@jit
def inverse_rms(x: tl.tensor, y: tl.tensor, eps: tl.tensor, HEAD_DIM: tl.constexpr) -> tl.tensor:
    """The inverse root mean squares [N, 1] of heads [N, HEAD_DIM], given as fp32 halves."""
    return tl.rsqrt(sum_in_pairs(tl.fma(x, x, y * y), HEAD_DIM // 2) / HEAD_DIM + eps)[:, None]
