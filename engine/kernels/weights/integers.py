"""Products in whole numbers on a CPU: rows of floats by weights of 8 bits, a quarter of the bytes of fp32 to read.

Integers add up exactly in any order, so a row has the same bits alone and among others, whatever PyTorch runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional as F

from .int8 import Int8Weight

STEPS = 127 * 128
"""Levels of a row on either side of zero: a coarse number of 8 bits times 128, and a fine one of 7. A single one of 8
bits would round rows more than weights."""
FEW_ROWS = 4
"""Up to this many rows PyTorch's product for bf16 rows takes no longer than whole numbers, even with AVX2
(DECISIONS.md)."""
VECTOR = 32
"""How many numbers of a row PyTorch's product for bf16 rows reads at once; it would read past the end of a row whose
length is no multiple of this."""


@cache
def multiplies_integers() -> bool:
    """Whether this CPU multiplies bytes in one instruction (VNNI), and oneDNN uses it, which may be switched off, so it
    is tried. Other CPUs take longer than in fp32, and sums of the largest numbers saturate."""
    if not (torch._C._has_mkldnn and torch.cpu._is_vnni_supported()):
        return False
    most = torch.full((16, 64), 127, dtype=torch.int8)
    return bool(torch._int_mm(most, most.t()).eq(64 * 127**2).all())


def in_levels(x: Tensor) -> tuple[Tensor, Tensor]:
    """Rounds rows x [n, depth] to ``STEPS``: int8 [2 n, depth], the coarse numbers of all rows, then the fine; and the
    size of a step in each row, fp32 [n, 1]."""
    step = torch.linalg.vector_norm(x, torch.inf, dim=-1, keepdim=True).add_(1e-30).div_(STEPS)
    levels = (x / step).round_()
    coarse = (levels / 128).round_()
    return torch.cat((coarse, levels.sub_(coarse, alpha=128))).to(torch.int8), step


@dataclass(frozen=True, slots=True)
class IntegerWeight(Int8Weight):
    """Weights of 8 bits that are multiplied in whole numbers."""

    def linear(self, x: Tensor) -> Tensor:
        """Products of fp32 rows, in fp32. Where whole numbers saturate, they are computed in floats."""
        if not multiplies_integers():
            return F.linear(x, self.restored())
        parts, step = in_levels(x)
        coarse, fine = self._products(parts).chunk(2)
        return fine.add_(coarse, alpha=128).mul_(step)

    def _products(self, parts: Tensor) -> Tensor:
        """Products fp32 [n, rows] of coarse or fine numbers int8 [n, depth] with the weight."""
        assert self.scales is not None
        return torch._int_mm(parts, self.values.t()).float().mul_(self.scales)


@dataclass(frozen=True, slots=True)
class RoundedRowsWeight(IntegerWeight):
    """Weights of 8 bits that PyTorch multiplies by rows rounded to bf16: each row is added up in one order, alone and
    among others, on every CPU."""

    @staticmethod
    def takes(depth: int) -> bool:
        """Whether it multiplies rows of this length; others stay floats."""
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
    """A drafter's weights: few rows are rounded to bf16 and multiplied so, in a third of the time. A row among more
    than ``FEW_ROWS`` has other bits where whole numbers are faster, which in a draft costs a token at most."""

    def linear(self, x: Tensor) -> Tensor:
        if not self.takes(x.shape[1]) or (len(x) > FEW_ROWS and multiplies_integers()):
            return IntegerWeight.linear(self, x)
        return RoundedRowsWeight.linear(self, x)


@dataclass(frozen=True, slots=True)
class LaidOutWeight(IntegerWeight):
    """An ``IntegerWeight`` kept in the order in which oneDNN multiplies on this CPU; for PyTorch it is [depth, rows].
    ``_int_mm`` lays a weight out anew for every product, which takes longer than to multiply a few rows. It can't be
    cut or joined."""

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
        # The rows get a step of 1 and no zero point here, since they have their own; no bias; fp32, with nothing
        # applied to it.
        product: Tensor = torch.ops.onednn.qlinear_pointwise(
            parts, 1.0, 0, self.values, self.scales, None, None, 1.0, 0, torch.float32, "none", [], ""
        )
        return product
