"""Weights in 8 bits: half the bytes to read, for drafting alone. A wrong draft costs time, never the answer."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..toolchain.jit import jit, tl
from .weight import Weight

INT8 = 1
ROWS_AT_ONCE = 8192
"""Rows of a weight that are fp32 at a time while it is packed: 92 MB at a hidden size of 2816."""


@dataclass(frozen=True, slots=True)
class Int8Weight(Weight):
    """int8 values [..., rows, depth], and fp32 scales [..., rows]: the size of one step in each row."""

    @property
    def format(self) -> int:
        return INT8

    @classmethod
    def allocate(cls, *shape: int, device: torch.device) -> Int8Weight:
        values = torch.empty(shape, dtype=torch.int8, device=device)
        return cls(values, torch.empty(shape[:-1], device=device))

    @classmethod
    def of(cls, weight: Tensor) -> Int8Weight:
        """Rounds each row of a weight [..., rows, depth] to 255 levels, symmetric around zero."""
        copy = cls.allocate(*weight.shape, device=weight.device)
        assert copy.scales is not None
        rows, values, scales = weight.flatten(0, -2), copy.values.flatten(0, -2), copy.scales.flatten()
        for start in range(0, len(rows), ROWS_AT_ONCE):
            chunk = slice(start, start + ROWS_AT_ONCE)
            highest = torch.linalg.vector_norm(rows[chunk], torch.inf, dim=-1, dtype=torch.float32)
            scales[chunk] = highest.clamp(min=1e-30) / 127
            values[chunk] = (rows[chunk] / scales[chunk, None]).round_()
        return copy

    def restored(self) -> Tensor:
        assert self.scales is not None
        return self.values.float() * self.scales[..., None]


@jit
def int8_factor(tile: tl.tensor, x: tl.tensor) -> tl.tensor:
    """A tile of 8-bit values in the dtype of rows x. That is exact: bf16 holds every integer to 256."""
    return tile.to(tl.float32).to(x.dtype.element_ty)


@jit
def int8_pairs(pairs: tl.tensor, x: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """The first and the second values of a tile of neighbours, uint16, in the dtype of rows x."""
    first = int8_factor((pairs & 255).to(tl.uint8).to(tl.int8, bitcast=True), x)
    second = int8_factor((pairs >> 8).to(tl.uint8).to(tl.int8, bitcast=True), x)
    return first, second
