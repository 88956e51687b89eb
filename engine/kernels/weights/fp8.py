"""Weights in FP8: E4M3 (four bits of exponent, three of mantissa) with one scale per row. Half the bytes of bf16."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor

from ..decode.tiling.tiles import PACKED_DENSE_TARGET, SHARED_WITH_PACKED, FormatTiles, RowTiles, TargetTiles, Tiles
from ..toolchain.jit import SIMULATED, jit, tl
from .panels import DEPTH, PackedWeight, from_panels, to_panels

FP8 = 2
HIGHEST = 448.0
"""The largest number of E4M3, which has no infinity."""


@dataclass(frozen=True, slots=True)
class Fp8Weight(PackedWeight):
    """Bits of E4M3 numbers in panels, uint8 [..., rows / 16, depth / 32, 16, 32], ordered by ``_laid_out``, and fp32
    scales [..., rows]. They are bits, because not every card has the type: kernels make bf16 of them by shifting."""

    bits: ClassVar[int] = 8
    scale_dtype: ClassVar[torch.dtype] = torch.float32
    scale_of_row: ClassVar[bool] = True
    tiles: ClassVar[FormatTiles] = FormatTiles(
        experts=TargetTiles(
            qkv=Tiles(columns=32, depth=512, warps=8, stages=3, registers=128),
            output=Tiles(columns=32, depth=512, splits=2, warps=8, stages=2, registers=96),
            gate_up=Tiles(columns=16, depth=512, warps=8, stages=3, registers=128),
            down=Tiles(columns=32, depth=256),
            expert_gate_up=Tiles(columns=16, depth=256, stages=3, programs=396, registers=168),
            expert_gate_up_alone=Tiles(columns=16, depth=256, stages=3, registers=128),
            expert_down=Tiles(columns=32, depth=128, warps=2, programs=792, registers=168),
            rows=RowTiles(warps=16),
            pairs=8,
            lets_go=True,
            shared=SHARED_WITH_PACKED,
        ),
        dense=PACKED_DENSE_TARGET,
    )

    @property
    def format(self) -> int:
        return FP8

    @classmethod
    def packed(cls, numbers: Tensor, scales: Tensor) -> Self:
        """Makes a weight of E4M3 numbers' bits and a scale for each row."""
        return cls(_laid_out(to_panels(numbers, DEPTH)), scales.float())

    @classmethod
    def rounded(cls, rows: Tensor, group: int) -> tuple[Tensor, Tensor]:
        """Rounds rows so that the largest number of each becomes ``HIGHEST``."""
        highest = torch.linalg.vector_norm(rows, torch.inf, dim=-1, dtype=torch.float32)
        scale = highest.clamp(min=1e-30) / HIGHEST
        return (rows / scale[:, None]).to(torch.float8_e4m3fn).view(torch.uint8), scale

    @classmethod
    def floats(cls, numbers: Tensor, scales: Tensor) -> Tensor:
        return numbers.view(torch.float8_e4m3fn).float() * scales[..., None]

    @classmethod
    def zeros(cls, numbers: Tensor) -> Tensor:
        return numbers & 0x7F == 0

    def restored(self) -> Tensor:
        assert self.scales is not None
        return self.floats(from_panels(_bits_of(self.values)), self.scales)


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
    """What the machine code in ``fp8_words`` does, for the interpreter: one of the four numbers of each word, in fp32.
    ``pair`` 0 or 1 chooses the neighbours or the two eight further on, ``half`` the lower or the upper one of them."""
    others = (words << 4 & 0x80F080F0) | (words >> 4 & 0x07000700)
    bits = (words if pair == 0 else others) >> (16 * half)
    return ((bits >> 8 & 0x80) | (bits >> 4 & 0x7F)).to(tl.uint8).to(tl.float8e4nv, bitcast=True).to(tl.float32)
