"""Products in whole numbers on a CPU: rows of floats by weights of 8 bits, a quarter of the bytes of fp32 to read.

Integers add up exactly in any order, so a row has the same bits alone and among others, whatever PyTorch runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from .int8 import Int8Weight

STEPS = 127 * 128
"""Levels of a row on either side of zero: a coarse number of 8 bits times 128, and a fine one of 7. One of 8 bits alone
would round rows more than weights."""
FEW_ROWS = 4
"""So many PyTorch's product for bf16 rows takes no longer with than whole numbers, with AVX2 either (DECISIONS.md)."""
VECTOR = 32
"""It reads so many numbers of a row at once, and past the end of one that isn't made of such."""


@cache
def multiplies_integers() -> bool:
    """Whether this CPU multiplies bytes in one instruction (VNNI), and oneDNN uses it: tried, as it can be told to do
    without. Others take longer than in fp32, and sums of the largest numbers saturate."""
    if not (torch._C._has_mkldnn and torch.cpu._is_vnni_supported()):
        return False
    most = torch.full((16, 64), 127, dtype=torch.int8)
    return bool(torch._int_mm(most, most.t()).eq(64 * 127**2).all())


def in_levels(x: Tensor) -> tuple[Tensor, Tensor]:
    """Rows x [n, depth] rounded to ``STEPS``, int8 [2 n, depth]: the coarse numbers of all, then the fine. And what a
    level of each row is worth, fp32 [n, 1]."""
    step = torch.linalg.vector_norm(x, torch.inf, dim=-1, keepdim=True).add_(1e-30).div_(STEPS)
    levels = (x / step).round_()
    coarse = (levels / 128).round_()
    return torch.cat((coarse, levels.sub_(coarse, alpha=128))).to(torch.int8), step


@dataclass(frozen=True, slots=True)
class IntegerWeight(Int8Weight):
    """Weights of 8 bits whose products are such."""

    endings: ClassVar[tuple[str, ...]] = ("", "_step")

    def linear(self, x: Tensor) -> Tensor:
        """Of fp32 rows, in fp32. Where whole numbers saturate, by floats."""
        if not multiplies_integers():
            return F.linear(x, self.restored())
        parts, step = in_levels(x)
        coarse, fine = self._products(parts).chunk(2)
        return fine.add_(coarse, alpha=128).mul_(step)

    def _products(self, parts: Tensor) -> Tensor:
        """fp32 [n, rows] of int8 [n, depth]."""
        assert self.scales is not None
        return torch._int_mm(parts, self.values.t()).float().mul_(self.scales)


@dataclass(frozen=True, slots=True)
class RoundedRowsWeight(IntegerWeight):
    """Weights of 8 bits whose products are PyTorch's with rows rounded to bf16: each row is added up in one order,
    alone and among others, on every CPU."""

    endings: ClassVar[tuple[str, ...]] = ("", "_of_rounded")

    @staticmethod
    def takes(depth: int) -> bool:
        """Whether it multiplies rows so long; others are floats."""
        return depth % VECTOR == 0

    def linear(self, x: Tensor) -> Tensor:
        if not self.takes(x.shape[1]):
            return F.linear(x, self.restored().to(x.dtype))
        assert self.scales is not None
        scales = self.scales.to(torch.bfloat16)
        product: Tensor = torch.ops.aten._weight_int8pack_mm(x.to(torch.bfloat16), self.values, scales)
        return product.to(x.dtype)


@dataclass(frozen=True, slots=True)
class ByteWeight(RoundedRowsWeight):
    """A drafter's: few rows are rounded to bf16 and multiplied so, in a third of the time. A row among more than
    ``FEW_ROWS`` has other bits where whole numbers are faster, which in a draft costs a token at most."""

    endings: ClassVar[tuple[str, ...]] = ("", "_unit")

    def linear(self, x: Tensor) -> Tensor:
        if not self.takes(x.shape[1]) or (len(x) > FEW_ROWS and multiplies_integers()):
            return IntegerWeight.linear(self, x)
        return RoundedRowsWeight.linear(self, x)


@dataclass(frozen=True, slots=True)
class LaidOutWeight(IntegerWeight):
    """The same for good, in the order that oneDNN reads on this CPU, [depth, rows] to PyTorch: ``_int_mm`` brings a
    weight into it for every product, which takes longer than to multiply a few rows. Can't be cut or joined."""

    @classmethod
    def of(cls, weight: Tensor) -> LaidOutWeight:
        plain = IntegerWeight.of(weight)
        return cls(torch.ops.onednn.qlinear_prepack(plain.values, None), plain.scales)

    @property
    def shape(self) -> torch.Size:
        depth, rows = self.values.shape
        return torch.Size((rows, depth))

    def restored(self) -> Tensor:
        assert self.scales is not None
        return self.values.to_dense().t().float() * self.scales[:, None]

    def _products(self, parts: Tensor) -> Tensor:
        # A step of 1 and no zero point for the rows, which have their own; no bias; fp32, and nothing done to it.
        product: Tensor = torch.ops.onednn.qlinear_pointwise(
            parts, 1.0, 0, self.values, self.scales, None, None, 1.0, 0, torch.float32, "none", [], ""
        )
        return product
