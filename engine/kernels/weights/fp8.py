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
    """Bits of E4M3 numbers in panels, uint8 [..., rows / 16, depth / 32, 16, 32], and fp32 scales [..., rows]. Bits,
    because not every card has the type: kernels make bf16 of them by shifting."""

    endings: ClassVar[tuple[str, ...]] = ("", "_scale")
    dtypes: ClassVar[tuple[torch.dtype, ...]] = (torch.uint8,)
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
        """From bits of E4M3 numbers, uint8 [..., rows, depth], and scales [..., rows]."""
        return cls(to_panels(bits, DEPTH), scales.float())

    @classmethod
    def of(cls, weight: Tensor) -> Fp8Weight:
        """Rounds a weight [..., rows, depth]; the largest of each row becomes ``HIGHEST``."""
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
            values[start // ROWS : (start + len(part)) // ROWS] = to_panels(bits, DEPTH)
        return copy

    def restored(self) -> Tensor:
        assert self.scales is not None
        return from_panels(self.values).view(torch.float8_e4m3fn).float() * self.scales[..., None]


@jit
def fp8_factor(tile: tl.tensor, x: tl.tensor) -> tl.tensor:
    """A tile of E4M3 bits in the dtype of rows x. That is exact. Exponent and mantissa are shifted to where bf16 has
    them, which is 2^120 too small, also below the normal numbers; one multiplication sets that right."""
    if SIMULATED:
        return tile.to(tl.float8e4nv, bitcast=True).to(tl.float32).to(x.dtype.element_ty)
    return tl.inline_asm_elementwise(
        """{
        .reg .b32 a, b, c, d, m, z;
        mov.b32 m, 0x7b807b80;
        mov.b32 z, 0x80008000;
        prmt.b32 a, $2, 0, 0x1404;
        prmt.b32 b, $2, 0, 0x3424;
        shr.u32 c, a, 4;
        shr.u32 d, b, 4;
        and.b32 c, c, 0x07f007f0;
        and.b32 d, d, 0x07f007f0;
        lop3.b32 a, a, 0x80008000, c, 0xea;
        lop3.b32 b, b, 0x80008000, d, 0xea;
        fma.rn.bf16x2 $0, a, m, z;
        fma.rn.bf16x2 $1, b, m, z;
        }""",
        "=r,=r,r",
        [tile],
        dtype=tl.bfloat16,
        is_pure=True,
        pack=4,
    )


@jit
def fp8_pairs(pairs: tl.tensor, x: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """The first and the second numbers of a tile of neighbours, uint16, in the dtype of rows x. Exact, see
    ``fp8_factor``; half of the work is multiplications, which run beside shifts and masks."""
    if SIMULATED:
        first = (pairs & 255).to(tl.uint8).to(tl.float8e4nv, bitcast=True).to(tl.float32)
        second = (pairs >> 8).to(tl.uint8).to(tl.float8e4nv, bitcast=True).to(tl.float32)
        return first.to(x.dtype.element_ty), second.to(x.dtype.element_ty)
    return tl.inline_asm_elementwise(  # type: ignore[no-any-return]
        """{
        .reg .b32 a, s, m, z;
        mov.b32 m, 0x7b807b80;
        mov.b32 z, 0x80008000;
        cvt.u32.u16 a, $2;
        prmt.b32 a, a, 0, 0x4140;
        and.b32 s, a, 0x00800080;
        mul.lo.u32 a, a, 16;
        mad.lo.u32 a, s, 240, a;
        fma.rn.bf16x2 a, a, m, z;
        mov.b32 {$0, $1}, a;
        }""",
        "=h,=h,h",
        [pairs],
        dtype=(tl.bfloat16, tl.bfloat16),
        is_pure=True,
        pack=1,
    )
