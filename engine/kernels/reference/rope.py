"""Rotary position embedding in the half-split layout: dimension i turns with dimension i + head_dim / 2."""

from __future__ import annotations

import torch
from torch import Tensor

from ...layer_config import RopeConfig


def inverse_frequencies(rope: RopeConfig, device: torch.device) -> Tensor:
    """Angle per position of each pair, fp32 [head_dim / 2], zero where it doesn't turn. Gemma 4's *proportional* kind
    divides by the whole head size and zeroes the slow pairs, unlike other models' partial rotary."""
    half = rope.head_dim // 2
    exponents = torch.arange(0, rope.head_dim, 2, dtype=torch.float32, device=device) / rope.head_dim
    frequencies = 1.0 / rope.theta**exponents
    turning = int(rope.rotated_fraction * half)
    return torch.where(torch.arange(half, device=device) < turning, frequencies, 0.0)


def rope_table(positions: Tensor, frequencies: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine and sine, fp32 [n, 1, head_dim / 2] each, of integer positions [n]."""
    angles = positions.float()[:, None, None] * frequencies
    return angles.cos(), angles.sin()


def apply_rope(x: Tensor, table: tuple[Tensor, Tensor]) -> Tensor:
    """Turns x [n, heads, head_dim] by a table of the same n rows, in fp32; the result has x's dtype."""
    cos, sin = table
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x.dtype)
