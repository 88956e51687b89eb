"""Weights as floats, multiplied as they lie in memory."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from .weight import Weight

PLAIN = 0


@dataclass(frozen=True, slots=True)
class PlainWeight(Weight):
    """A tensor of floats [..., rows, depth]."""

    @property
    def format(self) -> int:
        return PLAIN

    def restored(self) -> Tensor:
        return self.values.float()

    def linear(self, x: Tensor) -> Tensor:
        return F.linear(x, self.values)

    def grouped(self, x: Tensor, ends: Tensor) -> Tensor:
        if x.device.type != "cpu":
            return F.grouped_mm(x, self.values.mT, offs=ends)
        # PyTorch's own way multiplies for every expert there, most of which have no rows.
        parts = x.tensor_split(ends[:-1].long())
        return torch.cat([F.linear(rows, self.values[expert]) for expert, rows in enumerate(parts) if len(rows)])

    def unpacks_inside(self, x: Tensor) -> bool:
        return False
