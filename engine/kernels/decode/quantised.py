"""Weights in 8 bits: half the bytes to read, for drafting alone. A draft that is wrong costs time, never the answer."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

ROWS_AT_ONCE = 8192
"""Rows of a weight that are fp32 at a time: 92 MB of a hidden size of 2816, and nothing larger is needed."""


@dataclass(frozen=True, slots=True)
class QuantisedWeight:
    """A matrix in 8 bits, each row with a scale of its own: rows are what a product's results come from."""

    weight: Tensor
    """int8 [rows, depth]."""
    scales: Tensor
    """fp32 [rows]: what one step of each row is worth."""

    @classmethod
    def allocate(cls, rows: int, depth: int, device: torch.device) -> QuantisedWeight:
        weight = torch.empty(rows, depth, dtype=torch.int8, device=device)
        return cls(weight, torch.empty(rows, device=device))

    @classmethod
    def of(cls, weight: Tensor) -> QuantisedWeight:
        """Rounds each row of a weight [rows, depth] to 255 levels, symmetric around zero."""
        rows, depth = weight.shape
        copy = cls.allocate(rows, depth, weight.device)
        for start in range(0, rows, ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            highest = torch.linalg.vector_norm(weight[part], torch.inf, dim=-1, dtype=torch.float32)
            copy.scales[part] = highest.clamp(min=1e-30) / 127
            copy.weight[part] = (weight[part] / copy.scales[part, None]).round_()
        return copy

    @property
    def nbytes(self) -> int:
        return self.weight.nbytes + self.scales.nbytes

    def restored(self) -> Tensor:
        """fp32 [rows, depth]: what products with this copy multiply by."""
        return self.weight.float() * self.scales[:, None]


Weight = Tensor | QuantisedWeight
"""Of a product."""


def values_and_scales(weight: Weight) -> tuple[Tensor, Tensor | None]:
    """What a kernel reads: a matrix, and the scales of its rows where it is in 8 bits."""
    return (weight.weight, weight.scales) if isinstance(weight, QuantisedWeight) else (weight, None)
