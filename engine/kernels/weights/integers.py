"""Products in whole numbers on a CPU: rows of floats by weights of 8 bits, a quarter of the bytes of fp32 to read.

Integers add up exactly in any order, so a row has the same bits alone and among others, whatever PyTorch runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import torch
from torch import Tensor

from .int8 import Int8Weight

STEPS = 127 * 128
"""Levels of a row on either side of zero: a coarse number of 8 bits times 128, and a fine one of 7. One of 8 bits alone
would round rows more than weights."""


@cache
def multiplies_integers() -> bool:
    """Whether this CPU multiplies bytes in one instruction (VNNI). Others take longer than in fp32, or saturate."""
    return torch._C._has_mkldnn and torch.cpu._is_vnni_supported()


def integer_product(x: Tensor, values: Tensor, scales: Tensor) -> Tensor:
    """fp32 [n, rows] of fp32 rows x [n, depth], rounded to ``STEPS``, and int8 values [rows, depth], where those of a
    row are worth ``scales`` [rows]."""
    step = torch.linalg.vector_norm(x, torch.inf, dim=-1, keepdim=True).add_(1e-30).div_(STEPS)
    levels = (x / step).round_()
    coarse = (levels / 128).round_()
    parts = torch.cat((coarse, levels.sub_(coarse, alpha=128))).to(torch.int8)
    of_coarse, of_fine = torch._int_mm(parts, values.t()).float().chunk(2)
    return of_fine.add_(of_coarse, alpha=128).mul_(scales).mul_(step)


@dataclass(frozen=True, slots=True)
class IntegerWeight(Int8Weight):
    """Weights of 8 bits whose products are such."""

    endings: ClassVar[tuple[str, ...]] = ("", "_step")

    def linear(self, x: Tensor) -> Tensor:
        assert self.scales is not None
        return integer_product(x, self.values, self.scales)
