"""Weights in FP8: E4M3 (four bits of exponent, three of mantissa) with one scale per row. Half the bytes of bf16."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ..toolchain.jit import SIMULATED, jit, tl
from .int8 import ROWS_AT_ONCE
from .panels import DEPTH, ROWS, from_panels, to_panels
from .weight import Weight

FP8 = 2
HIGHEST = 448.0
"""The largest number of E4M3, which has no infinity."""


@dataclass(frozen=True, slots=True)
class Fp8Weight(Weight):
    """Bits of E4M3 numbers in panels, uint8 [..., rows / 16, depth / 32, 16, 32], ordered by ``_laid_out``, and fp32
    scales [..., rows]. They are bits, because not every card has the type: kernels make bf16 of them by shifting."""

    rows_together: ClassVar[int] = ROWS

    @property
    def format(self) -> int:
        return FP8

    @property
    def shape(self) -> torch.Size:
        *outer, panels, blocks, rows, width = self.values.shape
        return torch.Size((*outer, panels * rows, blocks * width))

    @classmethod
    def allocate(cls, *shape: int, device: torch.device) -> Fp8Weight:
        *outer, rows, depth = shape
        values = torch.empty(*outer, rows // ROWS, depth // DEPTH, ROWS, DEPTH, dtype=torch.uint8, device=device)
        return cls(values, torch.empty(*outer, rows, dtype=torch.float32, device=device))

    @classmethod
    def packed(cls, bits: Tensor, scales: Tensor) -> Fp8Weight:
        """Makes a weight of E4M3 numbers' bits, uint8 [..., rows, depth], and scales [..., rows]."""
        return cls(_laid_out(to_panels(bits, DEPTH)), scales.float())

    @classmethod
    def of(cls, weight: Tensor) -> Fp8Weight:
        """Rounds a weight [..., rows, depth]; the largest number of each row becomes ``HIGHEST``."""
        copy = cls.allocate(*weight.shape, device=weight.device)
        assert copy.scales is not None
        rows = weight.flatten(0, -2)
        values, scales = copy.values.view(-1, *copy.values.shape[-3:]), copy.scales.flatten()
        for start in range(0, len(rows), ROWS_AT_ONCE):
            part = rows[start : start + ROWS_AT_ONCE]
            highest = torch.linalg.vector_norm(part, torch.inf, dim=-1, dtype=torch.float32)
            scale = highest.clamp(min=1e-30) / HIGHEST
            bits = (part / scale[:, None]).to(torch.float8_e4m3fn).view(torch.uint8)
            scales[start : start + len(part)] = scale
            values[start // ROWS : (start + len(part)) // ROWS] = _laid_out(to_panels(bits, DEPTH))
        return copy

    def restored(self) -> Tensor:
        assert self.scales is not None
        return from_panels(_bits_of(self.values)).view(torch.float8_e4m3fn).float() * self.scales[..., None]


def _laid_out(bits: Tensor) -> Tensor:
    """Bits of numbers, uint8 [..., 16 n], as kernels unpack them. A word holds what one thread multiplies: of each
    sixteen numbers two neighbours and the two that are eight further on. The first of them lies in the lower half of
    the word where bf16 has its sign, exponent and mantissa, and the third in the bits left over; second and fourth in
    the upper half. One mask finds the first two, two shifts and masks the others."""
    one, two = bits.reshape(*bits.shape[:-1], -1, 2, 4, 2).unbind(-3)
    low = one << 4 | two & 0x0F
    high = one & 0x80 | two & 0x70 | two >> 7 << 3 | one >> 4 & 0x07
    return torch.stack((low, high), dim=-1).flatten(-4)


def _bits_of(laid: Tensor) -> Tensor:
    """The numbers' bits in their own order again, from the order of ``_laid_out``."""
    low, high = laid.reshape(*laid.shape[:-1], -1, 4, 2, 2).unbind(-1)
    one = high & 0x80 | (high & 0x07) << 4 | low >> 4
    two = (high & 0x08) << 4 | high & 0x70 | low & 0x0F
    return torch.stack((one, two), dim=-3).flatten(-4)


@jit
def fp8_words(words: tl.tensor, x: tl.tensor) -> tuple[tl.tensor, tl.tensor, tl.tensor, tl.tensor]:
    """The four numbers in each of the words, 32 bits, in the dtype of rows x: two neighbours, and the two eight further
    on. That is exact: exponent and mantissa stand where bf16 has them, which is 2^120 too small, also below the normal
    numbers; one multiplication sets that right."""
    if SIMULATED:
        bits = words.to(tl.uint32, bitcast=True)
        a = _simulated(bits, 0, 0).to(x.dtype.element_ty)
        b = _simulated(bits, 0, 1).to(x.dtype.element_ty)
        c = _simulated(bits, 1, 0).to(x.dtype.element_ty)
        return a, b, c, _simulated(bits, 1, 1).to(x.dtype.element_ty)
    return tl.inline_asm_elementwise(  # type: ignore[no-any-return]
        """{
        .reg .b32 a, b, c, m, z;
        mov.b32 m, 0x7b807b80;
        mov.b32 z, 0x80008000;
        and.b32 a, $4, 0x87f087f0;
        shl.b32 b, $4, 4;
        shr.u32 c, $4, 4;
        and.b32 b, b, 0x80f080f0;
        lop3.b32 b, c, 0x07000700, b, 0xea;
        fma.rn.bf16x2 a, a, m, z;
        fma.rn.bf16x2 b, b, m, z;
        mov.b32 {$0, $1}, a;
        mov.b32 {$2, $3}, b;
        }""",
        "=h,=h,=h,=h,r",
        [words],
        dtype=(tl.bfloat16,) * 4,
        is_pure=True,
        pack=1,
    )


@jit
def _simulated(words: tl.tensor, pair: tl.constexpr, half: tl.constexpr) -> tl.tensor:
    """In the interpreter: the first or the second numbers in one half of words, fp32."""
    others = (words << 4 & 0x80F080F0) | (words >> 4 & 0x07000700)
    bits = (words if pair == 0 else others) >> (16 * half)
    return ((bits >> 8 & 0x80) | (bits >> 4 & 0x7F)).to(tl.uint8).to(tl.float8e4nv, bitcast=True).to(tl.float32)
