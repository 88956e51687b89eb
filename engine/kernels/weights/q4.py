"""Weights of 4 bits with a step and an offset for each 32 neighbours, as Q4_1 in GGUF files: for PyTorch's own product
on a CPU, which reads an eighth of the bytes of fp32 and adds up each row in one order, alone and among others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import torch
from torch import Tensor

from .weight import Weight

Q4 = -1
"""The format's number; no kernel here reads it."""
GROUP = 32
PANEL = 64
"""How many rows PyTorch packs together."""
_multiply: Callable[[Tensor, Tensor, int, Tensor], Tensor] = torch.ops.aten._weight_int4pack_mm_for_cpu.default
OFF = 2.0**-6
"""How far numbers may lie from whole steps: those of a file are off only by rounding to fp32."""


@cache
def multiplies_nibbles() -> bool:
    """Whether PyTorch's product is written for this CPU; elsewhere it multiplies number by number."""
    return torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")


@dataclass(frozen=True, slots=True)
class Q4Weight(Weight):
    """uint8 [rows, depth / 2] as PyTorch packs them on this CPU, and bf16 [depth / 32, rows, 2]: the size of a step,
    and the middle of the 16 levels."""

    rows_together: ClassVar[int] = PANEL

    @property
    def format(self) -> int:
        return Q4

    @property
    def shape(self) -> torch.Size:
        rows, half = self.values.shape
        return torch.Size((rows, 2 * half))

    @staticmethod
    def takes(rows: int, depth: int) -> bool:
        """Whether a matrix of this size can be held in this form."""
        return rows % PANEL == depth % GROUP == 0

    @classmethod
    def allocate(cls, rows: int, depth: int, *, device: torch.device) -> Q4Weight:
        values = torch.empty(rows, depth // 2, dtype=torch.uint8, device=device)
        return cls(values, torch.empty(depth // GROUP, rows, 2, dtype=torch.bfloat16, device=device))

    @classmethod
    def of(cls, weight: Tensor) -> Q4Weight | None:
        """Makes a weight of fp32 numbers [rows, depth] that lie on 16 even levels in every group; None where they
        don't."""
        rows, depth = weight.shape
        if not cls.takes(rows, depth):
            return None
        groups = weight.view(rows, -1, GROUP)
        least, most = groups.aminmax(dim=-1, keepdim=True)
        step = (most - least) / 15
        numbers = (groups - least) / step.masked_fill(step == 0, 1)
        whole = numbers.round()
        if (numbers - whole).abs_().max() > OFF:
            return None
        values = torch.ops.aten._convert_weight_to_int4pack_for_cpu(whole.view(rows, depth).int(), 1)
        return cls(values, torch.cat((step, least + 8 * step), -1).transpose(0, 1).to(torch.bfloat16).contiguous())

    @classmethod
    def below_one_another(cls, weights: Sequence[Q4Weight]) -> Q4Weight:
        scales = [weight.scales for weight in weights if weight.scales is not None]
        return replace(weights[0], values=torch.cat([weight.values for weight in weights]), scales=torch.cat(scales, 1))

    def rows(self, start: int, end: int) -> Q4Weight:
        assert self.scales is not None and start % PANEL == end % PANEL == 0
        return Q4Weight(self.values[start:end], self.scales[:, start:end])

    def restored(self) -> Tensor:
        """The weight by the product's own definition: its products with unit rows."""
        return self.linear(torch.eye(self.shape[1])).T.contiguous()

    def linear(self, x: Tensor) -> Tensor:
        """Products in x's dtype; rows and products are rounded to bf16, sums are in fp32."""
        assert self.scales is not None
        rows = x if x.dtype is torch.bfloat16 else x.to(torch.bfloat16)
        product = _multiply(rows, self.values, GROUP, self.scales.contiguous())
        return product if rows is x else product.to(x.dtype)
