"""Weights in MXFP4, as gpt-oss publishes its experts: E2M1 floats of 4 bits, 32 neighbours of a row with one scale that
is a power of two (E8M0). Checkpoints are read as they are."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor

from .weight import Weight

MXFP4 = 3
GROUP = 32
"""How many neighbours share a scale."""
NUMBERS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)
"""What the 16 codes stand for: a sign, two bits of exponent, one of mantissa."""
BIAS = 127
"""A scale of s stands for 2^(s - 127)."""
HIGHEST = 252
"""The largest scale with which every number is finite in fp32; 255 stands for no number at all."""


@dataclass(frozen=True, slots=True)
class Mxfp4Weight(Weight):
    """Codes, two of a byte, the first in the lower bits: uint8 [..., rows, depth / 32, 16]. Scales are exponents, uint8
    [..., rows, depth / 32]. Both lie as in a checkpoint."""

    endings: ClassVar[tuple[str, ...]] = ("_blocks", "_scales")
    dtypes: ClassVar[tuple[torch.dtype, ...]] = (torch.uint8,)

    @property
    def format(self) -> int:
        return MXFP4

    @property
    def shape(self) -> torch.Size:
        *outer, blocks, width = self.values.shape
        return torch.Size((*outer, blocks * 2 * width))

    @classmethod
    def allocate(cls, *shape: int, device: torch.device) -> Mxfp4Weight:
        *outer, depth = shape
        assert depth % GROUP == 0, f"{depth} numbers are no groups of {GROUP}"
        values = torch.empty(*outer, depth // GROUP, GROUP // 2, dtype=torch.uint8, device=device)
        return cls(values, torch.empty(*outer, depth // GROUP, dtype=torch.uint8, device=device))

    @classmethod
    def of(cls, weight: Tensor) -> Mxfp4Weight:
        """Rounds a weight [..., rows, depth], for measuring: the largest of each group becomes 4 or 6."""
        copy = cls.allocate(*weight.shape, device=weight.device)
        if weight.is_meta:
            return copy
        assert copy.scales is not None
        groups = weight.float().reshape(*weight.shape[:-1], -1, GROUP)
        exponents = groups.abs().amax(-1).clamp(min=2.0**-100).log2().floor() - 2
        numbers = groups / exponents.exp2()[..., None]
        between = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0], device=weight.device)
        codes = (torch.bucketize(numbers.abs(), between) + 8 * (numbers < 0)).to(torch.uint8)
        copy.values.copy_(codes[..., ::2] | codes[..., 1::2] << 4)
        copy.scales.copy_(exponents + BIAS)
        return copy

    def restored(self) -> Tensor:
        return self.floats(torch.float32)

    def floats(self, dtype: torch.dtype) -> Tensor:
        """``restored`` in a dtype: exact in fp32 and bf16, whose exponents are those of the scales."""
        assert self.scales is not None
        numbers = torch.tensor(NUMBERS, dtype=dtype, device=self.values.device)
        codes = torch.stack((self.values & 15, self.values >> 4), dim=-1).flatten(-2)
        scales = torch.exp2(self.scales.float() - BIAS).to(dtype)
        return (numbers[codes.int()] * scales[..., None]).flatten(-2)

    def linear(self, x: Tensor) -> Tensor:
        return torch.nn.functional.linear(x, self.floats(x.dtype))

    def grouped(self, x: Tensor, ends: Tensor) -> Tensor:
        """Unpacks the experts that have rows, one after the other: all of them would be many gigabytes."""
        out = x.new_empty(len(x), self.shape[1])
        for expert, (start, end) in enumerate(pairwise([0, *ends.tolist()])):
            if start < end:
                out[start:end] = self._of(expert).linear(x[start:end])
        return out

    def _of(self, expert: int) -> Mxfp4Weight:
        assert self.scales is not None
        return Mxfp4Weight(self.values[expert], self.scales[expert])
