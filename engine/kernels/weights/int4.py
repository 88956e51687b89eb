"""Weights in INT4: whole numbers from -8 to 7, a group of neighbours in a row with one scale. A quarter of the bytes of
bf16, and the numbers of llama.cpp's q4_0 and of compressed-tensors' symmetric ``pack-quantized``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ..toolchain.jit import SIMULATED, jit, tl
from .int8 import ROWS_AT_ONCE
from .panels import DEPTH, ROWS, from_panels, to_panels
from .weight import Weight

GROUPS = (32, 64, 128)
"""How many neighbours may share a scale."""
NIBBLES = (0, 2, 16, 18, 1, 3, 17, 19)
"""Which numbers of a block lie in the eight nibbles of its first four bytes, from the lowest on; four further on lie in
the next four bytes, and so on. One mask then finds two neighbours, 16 bits apart, which are a register of bf16."""


@dataclass(frozen=True, slots=True)
class Int4Weight(Weight):
    """Numbers plus 8 in panels, uint8 [..., rows / 16, depth / 32, 16, 16], and scales [..., rows / 16, depth / group,
    16] in bf16, fp16 or fp32, as the checkpoint has them."""

    endings: ClassVar[tuple[str, ...]] = ("_packed", "_scale")
    dtypes: ClassVar[tuple[torch.dtype, ...]] = (torch.uint8,)
    rows_together: ClassVar[int] = ROWS

    @property
    def group(self) -> int:
        """How many neighbours share a scale: one of ``GROUPS``."""
        assert self.scales is not None
        return self.shape[-1] // self.scales.shape[-2]

    @property
    def format(self) -> int:
        return self.group

    @property
    def shape(self) -> torch.Size:
        *outer, panels, blocks, rows, width = self.values.shape
        return torch.Size((*outer, panels * rows, 2 * blocks * width))

    @classmethod
    def allocate(
        cls, *shape: int, device: torch.device, group: int = 32, scales: torch.dtype = torch.bfloat16
    ) -> Int4Weight:
        *outer, rows, depth = shape
        assert group in GROUPS and depth % group == 0, f"{depth} numbers are no groups of {group}"
        values = torch.empty(*outer, rows // ROWS, depth // DEPTH, ROWS, DEPTH // 2, dtype=torch.uint8, device=device)
        return cls(values, torch.empty(*outer, rows // ROWS, depth // group, ROWS, dtype=scales, device=device))

    @classmethod
    def packed(cls, numbers: Tensor, scales: Tensor) -> Int4Weight:
        """From numbers 0 to 15, uint8 [..., rows, depth], 8 of which stands for zero, and scales [..., rows, groups] in
        the dtype to keep."""
        return cls(_nibbles_of(to_panels(numbers, DEPTH)), to_panels(scales, 1).squeeze(-1))

    @classmethod
    def of(cls, weight: Tensor, group: int = 32) -> Int4Weight:
        """Rounds a weight [..., rows, depth]. The number furthest from zero in each group becomes -8, as in q4_0, so
        that a scale may be negative."""
        copy = cls.allocate(*weight.shape, device=weight.device, group=group)
        assert copy.scales is not None
        rows = weight.flatten(0, -2)
        values, scales = copy.values.view(-1, *copy.values.shape[-3:]), copy.scales.view(-1, *copy.scales.shape[-2:])
        for start in range(0, len(rows), ROWS_AT_ONCE):
            part = rows[start : start + ROWS_AT_ONCE].float()
            groups = part.reshape(len(part), -1, group)
            furthest = groups.gather(-1, groups.abs().argmax(-1, keepdim=True)).squeeze(-1)
            scale = (furthest / -8).to(copy.scales.dtype)
            steps = torch.where(scale == 0, 0.0, 1 / scale.float())[..., None]
            numbers = (groups * steps).round_().clamp_(-8, 7).add_(8).to(torch.uint8).flatten(-2)
            done, panels = cls.packed(numbers, scale), slice(start // ROWS, (start + len(part)) // ROWS)
            assert done.scales is not None
            values[panels], scales[panels] = done.values, done.scales
        return copy

    def numbers(self) -> Tensor:
        """The numbers 0 to 15 again, uint8 [..., rows, depth]."""
        return from_panels(_numbers_of(self.values))

    def restored(self) -> Tensor:
        assert self.scales is not None
        numbers, scales = self.numbers().float() - 8, from_panels(self.scales.float()[..., None])
        return (numbers.reshape(*scales.shape, self.group) * scales[..., None]).flatten(-2)

    def restored_for(self, dtype: torch.dtype) -> Tensor:
        return self.restored().to(dtype).float()


def _places() -> list[int]:
    """Which number of a block lies in each of its 32 nibbles."""
    return [4 * word + place for word in range(4) for place in NIBBLES]


def _nibbles_of(blocks: Tensor) -> Tensor:
    """uint8 [..., 16] of numbers [..., 32]."""
    low, high = blocks[..., _places()].reshape(*blocks.shape[:-1], DEPTH // 2, 2).unbind(-1)
    return low | high << 4


def _numbers_of(nibbles: Tensor) -> Tensor:
    """The numbers [..., 32] again."""
    ordered = torch.stack([nibbles & 15, nibbles >> 4], dim=-1).flatten(-2)
    return ordered[..., torch.tensor(_places(), device=nibbles.device).argsort()]


@jit
def int4_factors(tile: tl.tensor, x: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """Of a tile of bytes [..., 16] the first and the second 16 numbers of each block, in the dtype of rows x. That is
    exact: four bits become the last of 128's mantissa, which is 136 too much."""
    if SIMULATED:
        lane = tl.arange(0, tile.shape[-1])
        place = tile.to(tl.int32) * 0 + (lane // 4 * 4 + lane % 2 * 2)
        shift = (lane % 4 // 2 * 4).to(tl.uint8)
        first = (tl.gather(tile, place, axis=-1) >> shift) & 15
        second = (tl.gather(tile, place + 1, axis=-1) >> shift) & 15
        return (
            (first.to(tl.float32) - 8).to(x.dtype.element_ty),
            (second.to(tl.float32) - 8).to(x.dtype.element_ty),
        )
    return tl.inline_asm_elementwise(  # type: ignore[no-any-return]
        """{
        .reg .b32 a, b, c, d, one, off;
        mov.b32 one, 0x3f803f80;
        mov.b32 off, 0xc308c308;
        shr.u32 b, $4, 4;
        shr.u32 c, $4, 8;
        shr.u32 d, $4, 12;
        lop3.b32 a, $4, 0x000f000f, 0x43004300, 0xea;
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
def int4_scaled(tile: tl.tensor, scale: tl.tensor, x: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """``int4_factors`` times scales of the tile's shape, rounded once to the dtype of rows x: what PyTorch unpacks to.
    Scales that aren't bf16 take more instructions."""
    if SIMULATED or scale.dtype != tl.bfloat16:
        first, second = int4_factors(tile, x)
        return (
            (first.to(tl.float32) * scale.to(tl.float32)).to(x.dtype.element_ty),
            (second.to(tl.float32) * scale.to(tl.float32)).to(x.dtype.element_ty),
        )
    return tl.inline_asm_elementwise(  # type: ignore[no-any-return]
        """{
        .reg .b32 a, b, c, d, one, off, z;
        mov.b32 one, 0x3f803f80;
        mov.b32 off, 0xc308c308;
        mov.b32 z, 0x80008000;
        shr.u32 b, $4, 4;
        shr.u32 c, $4, 8;
        shr.u32 d, $4, 12;
        lop3.b32 a, $4, 0x000f000f, 0x43004300, 0xea;
        lop3.b32 b, b, 0x000f000f, 0x43004300, 0xea;
        lop3.b32 c, c, 0x000f000f, 0x43004300, 0xea;
        lop3.b32 d, d, 0x000f000f, 0x43004300, 0xea;
        fma.rn.bf16x2 a, a, one, off;
        fma.rn.bf16x2 b, b, one, off;
        fma.rn.bf16x2 c, c, one, off;
        fma.rn.bf16x2 d, d, one, off;
        fma.rn.bf16x2 $0, a, $5, z;
        fma.rn.bf16x2 $1, b, $5, z;
        fma.rn.bf16x2 $2, c, $5, z;
        fma.rn.bf16x2 $3, d, $5, z;
        }""",
        "=r,=r,=r,=r,r,r,r",
        [tile, scale],
        dtype=(tl.bfloat16, tl.bfloat16),
        is_pure=True,
        pack=4,
    )


@jit
def int4_pairs(words: tl.tensor, scale: tl.tensor, rest: tl.tensor, x: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """The two numbers in the lowest nibbles of each half of words, times their scale, in the dtype of rows x: rounded
    once. A scale is ``scale`` + ``rest``, both bf16; no ``rest``: where scales are bf16."""
    if SIMULATED:
        factor = scale.to(tl.float32)
        if rest is not None:
            factor += rest.to(tl.float32)
        first = ((words & 15).to(tl.float32) - 8) * factor
        second = ((words >> 16 & 15).to(tl.float32) - 8) * factor
        return first.to(x.dtype.element_ty), second.to(x.dtype.element_ty)
    elif rest is None:
        return tl.inline_asm_elementwise(  # type: ignore[no-any-return]
            """{
            .reg .b32 a, s, one, off, z;
            mov.b32 one, 0x3f803f80;
            mov.b32 off, 0xc308c308;
            mov.b32 z, 0x80008000;
            mov.b32 s, {$3, $3};
            lop3.b32 a, $2, 0x000f000f, 0x43004300, 0xea;
            fma.rn.bf16x2 a, a, one, off;
            fma.rn.bf16x2 a, a, s, z;
            mov.b32 {$0, $1}, a;
            }""",
            "=h,=h,r,h",
            [words, scale.to(tl.uint16, bitcast=True)],
            dtype=(tl.bfloat16, tl.bfloat16),
            is_pure=True,
            pack=1,
        )
    else:
        return tl.inline_asm_elementwise(  # type: ignore[no-any-return]
            """{
            .reg .b32 a, r, s, one, off, z;
            mov.b32 one, 0x3f803f80;
            mov.b32 off, 0xc308c308;
            mov.b32 z, 0x80008000;
            mov.b32 s, {$3, $3};
            mov.b32 r, {$4, $4};
            lop3.b32 a, $2, 0x000f000f, 0x43004300, 0xea;
            fma.rn.bf16x2 a, a, one, off;
            fma.rn.bf16x2 r, a, r, z;
            fma.rn.bf16x2 a, a, s, r;
            mov.b32 {$0, $1}, a;
            }""",
            "=h,=h,r,h,h",
            [words, scale.to(tl.uint16, bitcast=True), rest.to(tl.uint16, bitcast=True)],
            dtype=(tl.bfloat16, tl.bfloat16),
            is_pure=True,
            pack=1,
        )
