"""Weights in INT4: whole numbers from -8 to 7, a group of neighbours in a row with one scale. A quarter of the bytes of
bf16, and the numbers of llama.cpp's q4_0 and of compressed-tensors' symmetric ``pack-quantized``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ..toolchain.jit import SIMULATED, jit, tl
from .int8 import ROWS_AT_ONCE
from .weight import Weight

BLOCK = 32
"""Neighbours that lie together in 16 bytes, the first half in the lower bits: as in q4_0."""
GROUPS = (32, 64, 128)
"""How many neighbours may share a scale."""


@dataclass(frozen=True, slots=True)
class Int4Weight(Weight):
    """uint8 [..., rows, depth / 2] and scales [..., rows, depth / group] in bf16, fp16 or fp32, as the checkpoint has
    them. Byte 16 b + i of a row holds number 32 b + i, plus 8, in its lower bits and number 32 b + 16 + i above."""

    endings: ClassVar[tuple[str, ...]] = ("_packed", "_scale")
    dtypes: ClassVar[tuple[torch.dtype, ...]] = (torch.uint8,)

    @property
    def group(self) -> int:
        """How many neighbours share a scale: one of ``GROUPS``."""
        assert self.scales is not None
        return self.shape[-1] // self.scales.shape[-1]

    @property
    def format(self) -> int:
        return self.group

    @property
    def shape(self) -> torch.Size:
        return torch.Size((*self.values.shape[:-1], 2 * self.values.shape[-1]))

    @classmethod
    def allocate(
        cls, *shape: int, device: torch.device, group: int = BLOCK, scales: torch.dtype = torch.bfloat16
    ) -> Int4Weight:
        *outer, depth = shape
        assert group in GROUPS and depth % group == 0, f"{depth} numbers are no groups of {group}"
        values = torch.empty(*outer, depth // 2, dtype=torch.uint8, device=device)
        return cls(values, torch.empty(*outer, depth // group, dtype=scales, device=device))

    @classmethod
    def packed(cls, numbers: Tensor, scales: Tensor) -> Int4Weight:
        """From numbers 0 to 15, uint8 [..., rows, depth], 8 of which stands for zero."""
        low, high = numbers.reshape(*numbers.shape[:-1], -1, 2, BLOCK // 2).unbind(-2)
        return cls((low | high << 4).flatten(-2), scales)

    @classmethod
    def of(cls, weight: Tensor, group: int = BLOCK) -> Int4Weight:
        """Rounds a weight [..., rows, depth]. The number furthest from zero in each group becomes -8, as in q4_0, so
        that a scale may be negative."""
        copy = cls.allocate(*weight.shape, device=weight.device, group=group)
        assert copy.scales is not None
        rows, values, scales = weight.flatten(0, -2), copy.values.flatten(0, -2), copy.scales.flatten(0, -2)
        for start in range(0, len(rows), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            groups = rows[part].float().reshape(-1, rows.shape[-1] // group, group)
            furthest = groups.gather(-1, groups.abs().argmax(-1, keepdim=True)).squeeze(-1)
            scales[part] = furthest / -8
            scale = scales[part].float()
            steps = torch.where(scale == 0, 0.0, 1 / scale)[..., None]
            numbers = (groups * steps).round_().clamp_(-8, 7).add_(8).to(torch.uint8).flatten(-2)
            values[part] = cls.packed(numbers, scales[part]).values
        return copy

    def restored(self) -> Tensor:
        assert self.scales is not None
        blocks = self.values.reshape(*self.values.shape[:-1], -1, BLOCK // 2)
        numbers = torch.cat([blocks & 15, blocks >> 4], dim=-1).flatten(-2).float() - 8
        return (numbers.reshape(*self.scales.shape, self.group) * self.scales.float()[..., None]).flatten(-2)


@jit
def int4_factors(tile: tl.tensor, x: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """The lower and the upper numbers of a tile of bytes in the dtype of rows x. That is exact: four bits become the
    last of 128's mantissa, which is 136 too much."""
    if SIMULATED:
        low = ((tile & 15).to(tl.float32) - 8).to(x.dtype.element_ty)
        high = ((tile >> 4).to(tl.float32) - 8).to(x.dtype.element_ty)
        return low, high
    return tl.inline_asm_elementwise(  # type: ignore[no-any-return]
        """{
        .reg .b32 a, b, c, d, one, off;
        mov.b32 one, 0x3f803f80;
        mov.b32 off, 0xc308c308;
        prmt.b32 a, $4, 0, 0x4140;
        prmt.b32 b, $4, 0, 0x4342;
        shr.u32 c, a, 4;
        shr.u32 d, b, 4;
        lop3.b32 a, a, 0x000f000f, 0x43004300, 0xea;
        lop3.b32 b, b, 0x000f000f, 0x43004300, 0xea;
        lop3.b32 c, c, 0x000f000f, 0x43004300, 0xea;
        lop3.b32 d, d, 0x000f000f, 0x43004300, 0xea;
        fma.rn.bf16x2 $0, a, one, off;
        fma.rn.bf16x2 $1, b, one, off;
        fma.rn.bf16x2 $2, c, one, off;
        fma.rn.bf16x2 $3, d, one, off;
        }""",
        "=r,=r,=r,=r,r",
        [tile],
        dtype=(tl.bfloat16, tl.bfloat16),
        is_pure=True,
        pack=4,
    )


@jit
def int4_fours(
    fours: tl.tensor, scales: tl.tensor, rest: tl.tensor, x: tl.tensor
) -> tuple[tl.tensor, tl.tensor, tl.tensor, tl.tensor]:
    """Numbers times scales in the dtype of rows x, rounded once. ``fours`` uint16: two bytes each, whose lower numbers
    come first, then the upper ones. A scale is ``scales`` + ``rest``, both bits of bf16, uint16; ``rest`` is None where
    scales are bf16."""
    if SIMULATED:
        scale = scales.to(tl.bfloat16, bitcast=True).to(tl.float32)
        if rest is not None:
            scale += rest.to(tl.bfloat16, bitcast=True).to(tl.float32)
        dtype = x.dtype.element_ty
        return (
            (((fours & 15).to(tl.float32) - 8) * scale).to(dtype),
            (((fours >> 8 & 15).to(tl.float32) - 8) * scale).to(dtype),
            (((fours >> 4 & 15).to(tl.float32) - 8) * scale).to(dtype),
            (((fours >> 12).to(tl.float32) - 8) * scale).to(dtype),
        )
    numbers: tl.constexpr = """{
        .reg .b32 a, b, r, s, t, one, off, z;
        mov.b32 one, 0x3f803f80;
        mov.b32 off, 0xc308c308;
        mov.b32 z, 0x80008000;
        cvt.u32.u16 a, $4;
        prmt.b32 a, a, 0, 0x4140;
        shr.u32 b, a, 4;
        lop3.b32 a, a, 0x000f000f, 0x43004300, 0xea;
        lop3.b32 b, b, 0x000f000f, 0x43004300, 0xea;
        fma.rn.bf16x2 a, a, one, off;
        fma.rn.bf16x2 b, b, one, off;
        mov.b32 s, {$5, $5};"""
    if rest is None:
        return tl.inline_asm_elementwise(  # type: ignore[no-any-return]
            numbers
            + """
        fma.rn.bf16x2 a, a, s, z;
        fma.rn.bf16x2 b, b, s, z;
        mov.b32 {$0, $1}, a;
        mov.b32 {$2, $3}, b;
        }""",
            "=h,=h,=h,=h,h,h",
            [fours, scales],
            dtype=(tl.bfloat16, tl.bfloat16, tl.bfloat16, tl.bfloat16),
            is_pure=True,
            pack=1,
        )
    else:
        return tl.inline_asm_elementwise(  # type: ignore[no-any-return]
            numbers
            + """
            mov.b32 r, {$6, $6};
            fma.rn.bf16x2 t, a, r, z;
            fma.rn.bf16x2 a, a, s, t;
            fma.rn.bf16x2 t, b, r, z;
            fma.rn.bf16x2 b, b, s, t;
            mov.b32 {$0, $1}, a;
            mov.b32 {$2, $3}, b;
            }""",
            "=h,=h,=h,=h,h,h,h",
            [fours, scales, rest],
            dtype=(tl.bfloat16, tl.bfloat16, tl.bfloat16, tl.bfloat16),
            is_pure=True,
            pack=1,
        )
