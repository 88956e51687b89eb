"""Weights in INT4: whole numbers from -8 to 7, a group of neighbours in a row with one scale. A quarter of the bytes of
bf16, and the numbers of llama.cpp's q4_0 and of compressed-tensors' symmetric ``pack-quantized``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor

from ..decode.tiling.tiles import PACKED_DENSE_TARGET, SHARED_WITH_PACKED, FormatTiles, RowTiles, TargetTiles, Tiles
from ..toolchain.jit import SIMULATED, jit, tl
from .panels import DEPTH, ROWS, PackedWeight, from_panels, scales_from_panels, scales_to_panels

GROUPS = (32, 64, 128)
"""How many neighbours may share a scale."""
NIBBLES = (0, 2, 16, 18, 1, 3, 17, 19)
"""Which numbers of a block, from 0 to 15, lie in the eight nibbles of its first four bytes, from the lowest on; four
further on lie in the next four bytes, and so on. So two neighbours stand at the same place of the two halves of a
word, which are two bf16 numbers in a register."""


@dataclass(frozen=True, slots=True)
class Int4Weight(PackedWeight):
    """Numbers in panels, uint8 [..., rows / 16, depth / 32, 16, 16], ordered by ``NIBBLES``, and scales
    [..., rows / 16, depth / group, 16] in bf16, fp16 or fp32, as the checkpoint has them, laid out by
    ``scales_to_panels``."""

    bits: ClassVar[int] = 4
    scale_dtype: ClassVar[torch.dtype] = torch.bfloat16
    scale_end: ClassVar[float] = 2.0**32
    """Scales must be smaller than this: products are computed 2^37 times too small (``int4_words``)."""
    tiles: ClassVar[FormatTiles] = FormatTiles(
        experts=TargetTiles(
            qkv=Tiles(columns=32, depth=512, warps=8, registers=128),
            output=Tiles(columns=32, depth=512, splits=2, warps=8, registers=128),
            gate_up=Tiles(columns=32, depth=512, warps=8, stages=3, registers=168, turned=True),
            down=Tiles(columns=32, depth=256),
            expert_gate_up=Tiles(columns=16, depth=256, stages=3, programs=396, registers=168),
            expert_gate_up_alone=Tiles(columns=16, depth=256, registers=128),
            expert_down=Tiles(columns=32, depth=128, warps=2, programs=792, registers=168),
            rows=RowTiles(warps=16),
            pairs=8,
            lets_go=True,
            shared=SHARED_WITH_PACKED,
        ),
        dense=PACKED_DENSE_TARGET,
        of_sizes={
            (5120, 17408): TargetTiles(  # Qwen3.5-27B
                qkv=Tiles(columns=32, depth=256, stages=3, registers=128),
                output=Tiles(columns=32, depth=256, splits=2, stages=3, registers=128),
                gate_up=Tiles(columns=16, depth=256, stages=2),
                down=Tiles(columns=32, depth=256, splits=4, stages=3),
                shared=SHARED_WITH_PACKED,
            ),
            (2048, 512): TargetTiles(  # Qwen3.5-35B-A3B, Qwen3-Coder-Next
                qkv=Tiles(columns=32, depth=256, stages=2),
                output=Tiles(columns=32, depth=512, splits=2, warps=8, registers=128),
                gate_up=Tiles(columns=16, depth=512, warps=8, stages=3, registers=128),
                down=Tiles(columns=32, depth=512, warps=8, registers=128),
                expert_gate_up=Tiles(columns=16, depth=256, stages=3, registers=128),
                expert_gate_up_alone=Tiles(columns=16, depth=256, registers=128),
                expert_down=Tiles(columns=32, depth=256, registers=128),
                rows=RowTiles(warps=16),
                pairs=8,
                shared=SHARED_WITH_PACKED,
            ),
        },
    )

    @property
    def group(self) -> int:
        """How many neighbours share a scale: one of ``GROUPS``."""
        assert self.scales is not None
        return self.shape[-1] // self.scales.shape[-2]

    @property
    def format(self) -> int:
        return self.group

    @classmethod
    def packed(cls, numbers: Tensor, scales: Tensor) -> Self:
        """Makes a weight of numbers 0 to 15, of which 8 stands for zero, and scales in the dtype to keep."""
        return cls(_nibbles_of(numbers), scales_to_panels(scales))

    @classmethod
    def rounded(cls, rows: Tensor, group: int) -> tuple[Tensor, Tensor]:
        """Rounds rows to numbers 0 to 15, of which 8 stands for zero, and a scale for each group. The number furthest
        from zero in a group becomes -8 times its scale, as in q4_0, so that a scale may be negative."""
        groups = rows.float().reshape(len(rows), -1, group)
        furthest = groups.gather(-1, groups.abs().argmax(-1, keepdim=True)).squeeze(-1)
        scale = (furthest / -8).to(cls.scale_dtype)
        steps = torch.where(scale == 0, 0.0, 1 / scale.float())[..., None]
        return (groups * steps).round_().clamp_(-8, 7).add_(8).to(torch.uint8).flatten(-2), scale

    @classmethod
    def floats(cls, numbers: Tensor, scales: Tensor) -> Tensor:
        groups = numbers.reshape(*scales.shape, -1).float() - 8
        return (groups * scales.float()[..., None]).flatten(-2)

    @classmethod
    def zeros(cls, numbers: Tensor) -> Tensor:
        return numbers == 8

    def numbers(self) -> Tensor:
        """The weight's numbers, 0 to 15, in their own order: uint8 [..., rows, depth]."""
        return from_panels(_numbers_of(self.values))

    def restored(self) -> Tensor:
        assert self.scales is not None
        return self.floats(self.numbers(), scales_from_panels(self.scales))

    def restored_for(self, dtype: torch.dtype) -> Tensor:
        return self.restored().to(dtype).float()


def _places() -> list[int]:
    """Which number of a block lies in each of its 32 nibbles."""
    return [4 * word + nibble for word in range(4) for nibble in NIBBLES]


def _nibbles_of(numbers: Tensor) -> Tensor:
    """uint8 [..., rows / 16, depth / 32, 16, 16] of numbers 0 to 15, [..., rows, depth]. They get to their ``NIBBLES``
    by no index, which a GPU would be waited for: a number's place in its block is, in bits, its half, its word (2
    bits), its nibble and its neighbour; that of its byte is its word, its neighbour and its half."""
    *outer, rows, depth = numbers.shape
    placed = numbers.reshape(*outer, rows // ROWS, ROWS, depth // DEPTH, 2, 4, 2, 2)
    halves = placed[..., 0, :] | placed[..., 1, :] << 4
    words = halves.movedim((-5, -3), (-4, -1)).reshape(*outer, rows // ROWS, depth // DEPTH, ROWS, 4, 4)
    return words.flatten(-2)


def _numbers_of(nibbles: Tensor) -> Tensor:
    """The numbers [..., 32] in their own order again, from ``_nibbles_of``."""
    ordered = torch.stack([nibbles & 15, nibbles >> 4], dim=-1).flatten(-2)
    return ordered[..., torch.tensor(_places(), device=nibbles.device).argsort()]


@jit
def int4_words(
    words: tl.tensor, lower: tl.tensor, higher: tl.tensor, offset: tl.tensor, x: tl.tensor
) -> tuple[tl.tensor, tl.tensor, tl.tensor, tl.tensor, tl.tensor, tl.tensor, tl.tensor, tl.tensor]:
    """Of words, int32, four neighbours among the first 16 numbers of their blocks and four among the second, times
    scales (as ``int4_steps`` has them), rounded once to the dtype of rows x as PyTorch's unpacking is, but 2^37 times
    too small: sums must be ``raised``. A nibble alone, at the lowest bits of a bf16 number or four higher, is 2^-133 or
    2^-129 times what it says: eight bits of such numbers, one of them the exponent's, count on from zero. One fused
    multiplication scales that, takes 8 times the scale away and rounds."""
    if SIMULATED:
        bits, factor = words.to(tl.uint32, bitcast=True), lower.to(tl.float32) * 2.0**-37
        a = (_simulated(bits, 0, 0) * factor).to(x.dtype.element_ty)
        b = (_simulated(bits, 0, 1) * factor).to(x.dtype.element_ty)
        c = (_simulated(bits, 4, 0) * factor).to(x.dtype.element_ty)
        d = (_simulated(bits, 4, 1) * factor).to(x.dtype.element_ty)
        e = (_simulated(bits, 8, 0) * factor).to(x.dtype.element_ty)
        f = (_simulated(bits, 8, 1) * factor).to(x.dtype.element_ty)
        g = (_simulated(bits, 12, 0) * factor).to(x.dtype.element_ty)
        return a, b, c, d, e, f, g, (_simulated(bits, 12, 1) * factor).to(x.dtype.element_ty)
    return tl.inline_asm_elementwise(  # type: ignore[no-any-return]
        """{
        .reg .b32 a, b, c, d, w;
        shr.u32 w, $8, 8;
        and.b32 a, $8, 0x000f000f;
        and.b32 b, $8, 0x00f000f0;
        and.b32 c, w, 0x000f000f;
        and.b32 d, w, 0x00f000f0;
        fma.rn.bf16x2 a, a, $9, $11;
        fma.rn.bf16x2 b, b, $10, $11;
        fma.rn.bf16x2 c, c, $9, $11;
        fma.rn.bf16x2 d, d, $10, $11;
        mov.b32 {$0, $1}, a;
        mov.b32 {$2, $3}, b;
        mov.b32 {$4, $5}, c;
        mov.b32 {$6, $7}, d;
        }""",
        "=h,=h,=h,=h,=h,=h,=h,=h,r,r,r,r",
        [words, lower, higher, offset],
        dtype=(tl.bfloat16,) * 8,
        is_pure=True,
        pack=1,
    )


@jit
def int4_scaled(
    words: tl.tensor, scale: tl.tensor, x: tl.tensor
) -> tuple[tl.tensor, tl.tensor, tl.tensor, tl.tensor, tl.tensor, tl.tensor, tl.tensor, tl.tensor]:
    """Unpacks words as ``int4_words`` does, given their scales in any float dtype. ``scale`` has the shape of ``words``
    without its last dimension, over which words share a scale."""
    if SIMULATED or scale.dtype == tl.bfloat16:
        lower, higher, offset = int4_steps(scale)
        lower = tl.broadcast_to(tl.expand_dims(lower, -1), words.shape)
        higher = tl.broadcast_to(tl.expand_dims(higher, -1), words.shape)
        return int4_words(words, lower, higher, tl.broadcast_to(tl.expand_dims(offset, -1), words.shape), x)  # type: ignore[no-any-return]
    else:  # numbers, which are exact, and then the scale that bf16 doesn't hold
        lower, higher, offset = int4_steps(tl.full(words.shape, 2.0**31, tl.bfloat16))
        a, b, c, d, e, f, g, h = int4_words(words, lower, higher, offset, x)
        scale = tl.broadcast_to(tl.expand_dims(scale.to(tl.float32) * 2.0**-31, -1), words.shape)
        return (
            (a.to(tl.float32) * scale).to(tl.bfloat16),
            (b.to(tl.float32) * scale).to(tl.bfloat16),
            (c.to(tl.float32) * scale).to(tl.bfloat16),
            (d.to(tl.float32) * scale).to(tl.bfloat16),
            (e.to(tl.float32) * scale).to(tl.bfloat16),
            (f.to(tl.float32) * scale).to(tl.bfloat16),
            (g.to(tl.float32) * scale).to(tl.bfloat16),
            (h.to(tl.float32) * scale).to(tl.bfloat16),
        )


@jit
def raised(total: tl.tensor) -> tl.tensor:
    """Undoes the factor 2^-37 of ``int4_words`` and ``int4_pairs``, on the sums of products with them."""
    return total * 2.0**37


@jit
def int4_steps(scale: tl.tensor) -> tuple[tl.tensor, tl.tensor, tl.tensor]:
    """What ``int4_words`` and ``int4_pairs`` multiply nibbles by, at the lower place and at the higher one, and add,
    for bf16 scales: twice in each int32."""
    if SIMULATED:
        return scale, scale, scale
    return tl.inline_asm_elementwise(  # type: ignore[no-any-return]
        """{
        .reg .b32 a, b, c, s, z;
        mov.b32 a, 0x6f806f80;
        mov.b32 b, 0x6d806d80;
        mov.b32 c, 0xae80ae80;
        mov.b32 z, 0x80008000;
        mov.b32 s, {$3, $3};
        fma.rn.bf16x2 $0, s, a, z;
        fma.rn.bf16x2 $1, s, b, z;
        fma.rn.bf16x2 $2, s, c, z;
        }""",
        "=r,=r,=r,h",
        [scale.to(tl.uint16, bitcast=True)],
        dtype=(tl.int32,) * 3,
        is_pure=True,
        pack=1,
    )


@jit
def int4_pairs(
    words: tl.tensor, turn: tl.tensor, steps: tl.tensor, offset: tl.tensor, x: tl.tensor
) -> tuple[tl.tensor, tl.tensor]:
    """The two neighbours that stand ``turn`` bits from the lowest of the halves of words, scaled like those of
    ``int4_words``; ``steps`` and ``offset`` are the first and the last of ``int4_steps``."""
    if SIMULATED:
        factor = steps.to(tl.float32) * 2.0**-37
        first, second = _simulated(words, turn, 0) * factor, _simulated(words, turn, 1) * factor
        return first.to(x.dtype.element_ty), second.to(x.dtype.element_ty)
    return tl.inline_asm_elementwise(  # type: ignore[no-any-return]
        """{
        .reg .b32 a;
        shr.u32 a, $2, $3;
        and.b32 a, a, 0x000f000f;
        fma.rn.bf16x2 a, a, $4, $5;
        mov.b32 {$0, $1}, a;
        }""",
        "=h,=h,r,r,r,r",
        [words, turn, steps, offset],
        dtype=(tl.bfloat16, tl.bfloat16),
        is_pure=True,
        pack=1,
    )


@jit
def int4_wide_pairs(
    words: tl.tensor, turn: tl.tensor, scale: tl.tensor, rest: tl.tensor, x: tl.tensor
) -> tuple[tl.tensor, tl.tensor]:
    """``int4_pairs`` for scales that aren't bf16: two neighbours of each of the words, in the dtype of rows x.
    ``scale`` and ``rest``, both bf16, add up to the scale, 2^-31 of it."""
    if SIMULATED:
        factor = (scale.to(tl.float32) + rest.to(tl.float32)) * 2.0**-6
        first, second = _simulated(words, turn, 0) * factor, _simulated(words, turn, 1) * factor
        return first.to(x.dtype.element_ty), second.to(x.dtype.element_ty)
    return tl.inline_asm_elementwise(  # type: ignore[no-any-return]
        """{
        .reg .b32 a, r, s, most, off, z;
        mov.b32 most, 0x7f007f00;
        mov.b32 off, 0xbe00be00;
        mov.b32 z, 0x80008000;
        mov.b32 s, {$4, $4};
        mov.b32 r, {$5, $5};
        shr.u32 a, $2, $3;
        and.b32 a, a, 0x000f000f;
        fma.rn.bf16x2 a, a, most, off;
        fma.rn.bf16x2 r, a, r, z;
        fma.rn.bf16x2 a, a, s, r;
        mov.b32 {$0, $1}, a;
        }""",
        "=h,=h,r,r,h,h",
        [words, turn, scale.to(tl.uint16, bitcast=True), rest.to(tl.uint16, bitcast=True)],
        dtype=(tl.bfloat16, tl.bfloat16),
        is_pure=True,
        pack=1,
    )


@jit
def _simulated(words: tl.tensor, turn: tl.tensor, half: tl.tensor) -> tl.tensor:
    """In the interpreter: the numbers ``turn`` bits from the lowest of one half of words, fp32."""
    return ((words >> (words * 0 + turn + 16 * half) & 15).to(tl.int32) - 8).to(tl.float32)
