"""Rotary position embedding in the half-split layout: dimension i turns with dimension i + head_dim / 2."""

from __future__ import annotations

from math import ceil, floor, log, pi

import torch
from torch import Tensor

from ...layer_config import RopeConfig, RopeScaling


def inverse_frequencies(rope: RopeConfig, device: torch.device) -> Tensor:
    """Angle per position of each pair, fp32 [head_dim / 2], zero where it doesn't turn. Gemma 4's *proportional* kind
    divides by the whole head size and zeroes the slow pairs; *partial* rotary divides by what turns."""
    half = rope.head_dim // 2
    channels = int(rope.rotated_fraction * rope.head_dim) if rope.partial else rope.head_dim
    exponents = torch.arange(0, rope.head_dim, 2, dtype=torch.float32, device=device) / channels
    frequencies = 1.0 / rope.theta**exponents
    if rope.scaling is not None:
        slowed = _slowed(rope, rope.scaling, frequencies)
        frequencies = frequencies * (1 - slowed) + frequencies / rope.scaling.factor * slowed
    turning = int(rope.rotated_fraction * half)
    return torch.where(torch.arange(half, device=device) < turning, frequencies, 0.0)


def _slowed(rope: RopeConfig, scaling: RopeScaling, frequencies: Tensor) -> Tensor:
    """How far each pair of a head's channels is slowed down, fp32 [head_dim / 2]: from 0 (it turns as without scaling)
    to 1 (slower by the scaling's whole factor)."""
    if scaling.kind == "linear":
        return torch.ones_like(frequencies)
    if scaling.kind == "llama3":
        turns = scaling.trained_context / (2 * pi / frequencies)
        return 1 - ((turns - scaling.slow) / (scaling.fast - scaling.slow)).clamp(0, 1)
    first, last = (
        rope.head_dim * log(scaling.trained_context / (turns * 2 * pi)) / (2 * log(rope.theta))
        for turns in (scaling.fast, scaling.slow)
    )
    if scaling.whole_pairs:
        first, last = floor(first), ceil(last)
    first, last = max(first, 0), min(last, rope.head_dim - 1)
    pairs = torch.arange(len(frequencies), dtype=torch.float32, device=frequencies.device)
    return ((pairs - first) / (last - first if last != first else 0.001)).clamp(0, 1)


def rope_table(positions: Tensor, frequencies: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine and sine, fp32 [n, 1, head_dim] each, of integer positions [n]; the first half of the sines is negated."""
    angles = positions.float()[:, None, None] * frequencies
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((cos, cos), dim=-1), torch.cat((-sin, sin), dim=-1)


def apply_rope(x: Tensor, table: tuple[Tensor, Tensor]) -> Tensor:
    """Turns x [n, heads, head_dim] by a table of the same n rows, in fp32; the result has x's dtype."""
    cos, sin = table
    wide = x.float()
    first, second = wide.chunk(2, dim=-1)
    return (wide * cos).add_(torch.cat((second, first), dim=-1).mul_(sin)).to(x.dtype)
