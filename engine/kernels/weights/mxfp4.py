"""Weights in MXFP4, as gpt-oss publishes its experts: E2M1 floats of 4 bits (a sign, two bits of exponent, one of
mantissa), 32 neighbours of a row with one scale that is a power of two (E8M0)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import ClassVar, Self

import torch
from torch import Tensor

from ..decode.tiling.tiles import SHARED_WITH_PACKED, FormatTiles, TargetTiles, Tiles
from ..toolchain.jit import SIMULATED, jit, tl
from .panels import DEPTH, PackedWeight, Rows, from_panels, scales_from_panels, scales_to_panels, to_panels

MXFP4 = 3
GROUP = 32
"""How many neighbours share a scale."""
NUMBERS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)
"""The numbers for which the 16 codes stand."""
BIAS = 127
"""A scale of s stands for 2^(s - 127)."""
LAST = 254
"""The largest scale of the format; 255 stands for no number at all."""
HIGHEST = 133
"""The largest scale, 2^6, that kernels multiply by: up to there every product of a number and its scale, 2^5 times too
small, is exact in bf16, from a scale of 0 on (``mxfp4_words``). Numbers up to 384 are far more than weights have."""
PLACES = (
    *((13, 6, 5, 4), (29, 22, 21, 20), (9, 2, 1, 0), (25, 18, 17, 16)),
    *((19, 12, 11, 10), (3, 28, 27, 26), (15, 8, 7, 14), (31, 24, 23, 30)),
)
"""Where in a word of four bytes the bits of eight numbers lie, sign first: of four neighbours, then of those 16 further
on. Once the word is turned right by 30, 26, 4 or 0 bits, two neighbours' bits stand where a register of bf16 has sign,
lowest exponent and highest mantissa; but the last two's mantissas lie 8 bits higher, since no four such places make up
a word."""


@dataclass(frozen=True, slots=True)
class Mxfp4Weight(PackedWeight):
    """Numbers in panels, uint8 [..., rows / 16, depth / 32, 16, 16], their bits ordered by ``PLACES``, and scales, the
    exponents that checkpoints have, uint8 [..., rows / 16, depth / 32, 16], laid out by ``scales_to_panels``."""

    bits: ClassVar[int] = 4
    scale_dtype: ClassVar[torch.dtype] = torch.uint8
    experts_only: ClassVar[bool] = True
    tiles: ClassVar[FormatTiles] = FormatTiles(  # for gpt-oss, whose attention is bf16
        experts=TargetTiles(
            qkv=Tiles(columns=64, depth=256, stages=5, early=1, turned=True),
            output=Tiles(columns=32, depth=128, splits=4, warps=2, early=2),
            router=Tiles(columns=32, depth=64, splits=23),
            expert_gate_up=Tiles(columns=32, depth=256, stages=2, registers=128),
            expert_gate_up_alone=Tiles(columns=32, depth=256, stages=2, registers=168),
            expert_down=Tiles(columns=32, depth=256, stages=3, registers=128),
            pairs=8,
            lets_go=True,
            shared=SHARED_WITH_PACKED,
        )
    )

    @property
    def format(self) -> int:
        return MXFP4

    @classmethod
    def packed(cls, numbers: Tensor, scales: Tensor) -> Self:
        """Makes a weight of codes 0 to 15 and scales, uint8 [..., rows, depth / 32]."""
        return cls(_laid_out(to_panels(numbers, DEPTH)), scales_to_panels(scales))

    @classmethod
    def rounded(cls, rows: Tensor, group: int) -> tuple[Tensor, Tensor]:
        """Rounds rows to codes and scales, for measuring: the largest number of each group becomes 4 or 6 times its
        scale."""
        between = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0], device=rows.device)
        groups = rows.float().reshape(len(rows), -1, GROUP)
        exponents = groups.abs().amax(-1).clamp(min=2.0**-100).log2().floor() - 2
        numbers = groups / exponents.exp2()[..., None]
        codes = torch.bucketize(numbers.abs(), between) + 8 * (numbers < 0)
        return codes.to(torch.uint8).flatten(-2), (exponents + BIAS).to(torch.uint8)

    @classmethod
    def floats(cls, numbers: Tensor, scales: Tensor) -> Tensor:
        """Exact in fp32 and bf16 up to ``HIGHEST``: products are made of halves of the numbers and twice the scales,
        and both dtypes have all of these."""
        halves = torch.tensor(NUMBERS, device=numbers.device) / 2
        doubled = (scales.int() + 1 << 23).view(torch.float32)
        groups = halves[numbers.int()].view(*scales.shape, GROUP)
        return (groups * doubled[..., None]).flatten(-2)

    @classmethod
    def zeros(cls, numbers: Tensor) -> Tensor:
        return numbers & 7 == 0

    @classmethod
    def wrong_scale(cls, scales: Tensor, parts: Iterable[Rows]) -> str:
        highest = int(scales.max())
        if highest > LAST:
            return "not a finite number"
        return f"2^{HIGHEST + 1 - BIAS} or more" if highest > HIGHEST else ""

    def codes(self) -> Tensor:
        """The weight's codes, 0 to 15, in their own order: uint8 [..., rows, depth]."""
        return from_panels(_codes_of(self.values))

    def restored(self) -> Tensor:
        assert self.scales is not None
        return self.floats(self.codes(), scales_from_panels(self.scales))

    def grouped(self, x: Tensor, ends: Tensor) -> Tensor:
        """As ``Weight.grouped``. Experts that have rows are unpacked one after the other: all at once would be many
        gigabytes."""
        out = x.new_empty(len(x), self.shape[1])
        if x.is_meta:
            return out
        for expert, (start, end) in enumerate(pairwise([0, *ends.tolist()])):
            if start < end:
                out[start:end] = self._of(expert).linear(x[start:end])
        return out

    def _of(self, expert: int) -> Mxfp4Weight:
        assert self.scales is not None
        return Mxfp4Weight(self.values[expert], self.scales[expert])


def _laid_out(codes: Tensor) -> Tensor:
    """Codes [..., 32] as uint8 [..., 16], ordered by ``PLACES``."""
    numbers = codes.reshape(*codes.shape[:-1], 2, 4, 4).transpose(-3, -2).flatten(-2).int()
    words = torch.zeros(numbers.shape[:-1], dtype=torch.int32, device=codes.device)
    for number, mask, shift in _moves():
        words |= (numbers[..., number] & mask) << shift
    return words.view(torch.uint8)


def _codes_of(laid: Tensor) -> Tensor:
    """The codes [..., 32] again, from the order of ``PLACES``."""
    words = laid.contiguous().view(torch.int32)
    numbers = torch.zeros(*words.shape, len(PLACES), dtype=torch.int32, device=laid.device)
    for number, mask, shift in _moves():
        numbers[..., number] |= words >> shift & mask
    return numbers.to(torch.uint8).view(*words.shape, 2, 4).transpose(-3, -2).flatten(-3)


@cache
def _moves() -> list[tuple[int, int, int]]:
    """For each number: its index, the bits of its code that stay side by side, and how far they move."""
    masks: dict[tuple[int, int], int] = {}
    for number, places in enumerate(PLACES):
        for bit, target in zip((3, 2, 1, 0), places, strict=True):
            masks[number, target - bit] = masks.get((number, target - bit), 0) | 1 << bit
    return [(number, mask, shift) for (number, shift), mask in masks.items()]


@jit
def mxfp4_steps(scale: tl.tensor) -> tl.tensor:
    """The factors of ``mxfp4_words`` for scales as bytes: 2^121 times the scale as bf16, twice in each int32."""
    return scale.to(tl.int32) * 0x00800080 + 0x3C803C80


@jit
def mxfp4_words(
    words: tl.tensor, steps: tl.tensor, x: tl.tensor
) -> tuple[tl.tensor, tl.tensor, tl.tensor, tl.tensor, tl.tensor, tl.tensor, tl.tensor, tl.tensor]:
    """Of words, int32, four neighbours among the first 16 numbers of their blocks and four among the second, times the
    scales that ``steps`` (``mxfp4_steps``) were made of, in the dtype of rows x. Exact, but 2^5 times too small: sums
    must be ``lifted``. Exponent and mantissa stand where bf16 has them, which is 2^126 too small, also for a half."""
    if SIMULATED:
        bits = words.to(tl.uint32, bitcast=True)
        a = _simulated(bits, 0, 0, steps).to(x.dtype.element_ty)
        b = _simulated(bits, 0, 1, steps).to(x.dtype.element_ty)
        c = _simulated(bits, 1, 0, steps).to(x.dtype.element_ty)
        d = _simulated(bits, 1, 1, steps).to(x.dtype.element_ty)
        e = _simulated(bits, 2, 0, steps).to(x.dtype.element_ty)
        f = _simulated(bits, 2, 1, steps).to(x.dtype.element_ty)
        g = _simulated(bits, 3, 0, steps).to(x.dtype.element_ty)
        return a, b, c, d, e, f, g, _simulated(bits, 3, 1, steps).to(x.dtype.element_ty)
    return tl.inline_asm_elementwise(  # type: ignore[no-any-return]
        """{
        .reg .b32 a, b, c, d, z;
        mov.b32 z, 0x80008000;
        shl.b32 a, $8, 2;
        shl.b32 b, $8, 6;
        shf.r.wrap.b32 c, $8, $8, 4;
        shr.u32 d, $8, 8;
        and.b32 a, a, 0x81c081c0;
        and.b32 b, b, 0x81c081c0;
        and.b32 c, c, 0x81c081c0;
        and.b32 d, d, 0x00400040;
        lop3.b32 d, $8, 0x81808180, d, 0xea;
        fma.rn.bf16x2 a, a, $9, z;
        fma.rn.bf16x2 b, b, $9, z;
        fma.rn.bf16x2 c, c, $9, z;
        fma.rn.bf16x2 d, d, $9, z;
        mov.b32 {$0, $1}, a;
        mov.b32 {$2, $3}, b;
        mov.b32 {$4, $5}, c;
        mov.b32 {$6, $7}, d;
        }""",
        "=h,=h,=h,=h,=h,=h,=h,=h,r,r",
        [words, steps],
        dtype=(tl.bfloat16,) * 8,
        is_pure=True,
        pack=1,
    )


@jit
def mxfp4_pairs(words: tl.tensor, pair: tl.tensor, steps: tl.tensor, x: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """The two neighbours that are a ``pair`` (0 to 3) of each of the words, as ``mxfp4_words`` gives them. A thread
    has pairs of two kinds, so what differs between threads are shifts and masks."""
    if SIMULATED:
        first = _simulated(words, pair, 0, steps).to(x.dtype.element_ty)
        return first, _simulated(words, pair, 1, steps).to(x.dtype.element_ty)
    turn = 30 + pair // 2 * 6 - pair % 2 * 4
    aside = tl.where(pair == 3, 0x00400040, 0)
    inside = aside ^ ~0x7E3F7E3F
    return tl.inline_asm_elementwise(  # type: ignore[no-any-return]
        """{
        .reg .b32 a, b, z;
        mov.b32 z, 0x80008000;
        shf.r.wrap.b32 a, $2, $2, $3;
        shr.u32 b, $2, 8;
        and.b32 b, b, $5;
        lop3.b32 a, a, $4, b, 0xea;
        fma.rn.bf16x2 a, a, $6, z;
        mov.b32 {$0, $1}, a;
        }""",
        "=h,=h,r,r,r,r,r",
        [words, turn, inside, aside, steps],
        dtype=(tl.bfloat16, tl.bfloat16),
        is_pure=True,
        pack=1,
    )


@jit
def lifted(total: tl.tensor) -> tl.tensor:
    """Undoes the factor 2^-5 of ``mxfp4_words`` and ``mxfp4_pairs``, on the sums of products with them."""
    return total * 32.0


@jit
def _simulated(words: tl.tensor, pair: tl.tensor, half: tl.tensor, steps: tl.tensor) -> tl.tensor:
    """In the interpreter: the numbers in one half of a pair of words, times what ``steps`` are; fp32."""
    turn = (words * 0 + (30 + pair // 2 * 6 - pair % 2 * 4)) % 32
    turned = (words >> turn) | (words << ((32 - turn) % 32))
    turned = tl.where(words * 0 + pair == 3, turned & 0x81808180 | words >> 8 & 0x00400040, turned & 0x81C081C0)
    bits = (turned >> (16 * half) & 0xFFFF).to(tl.uint32)
    number = (bits << 16).to(tl.float32, bitcast=True)
    # In two steps: 2^126 is undone before the scale, lest interpreters drop the smallest of fp32's numbers.
    return number * 2.0**126 * (((steps & 0x7F80) << 16).to(tl.float32, bitcast=True) * 2.0**-126)
