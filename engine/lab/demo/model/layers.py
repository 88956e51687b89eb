"""What the target and the drafter share: norms, rotary angles, and the two ways to run attention.

Models never decide who sees whom. They hand projected queries, keys and values to an ``Attend``: packed rows of
isolated documents while training, a key-value cache while generating. So one definition of the mathematics serves
both, and the parity test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(queries [B, heads, n, d], keys [B, kv_heads, m, d], values like keys) -> [B, heads, n, d]"""


class TrainableNorm(nn.Module):
    """Root-mean-square norm computed in float32; the weight multiplies directly (not 1 + weight)."""

    def __init__(self, size: int, epsilon: float, initial: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((size,), initial))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        return (rms_normalise(x, self.epsilon) * self.weight.float()).type_as(x)


def rms_normalise(x: Tensor, epsilon: float) -> Tensor:
    """``x`` over its root mean square, in float32."""
    wide = x.float()
    return wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + epsilon)


def rotary_angles(positions: Tensor, head_dim: int, theta: float, fraction: float = 1.0) -> tuple[Tensor, Tensor]:
    """Cosine and sine [B, 1, n, d / 2] for positions [B, n]; beyond ``fraction`` of the pairs the angle is zero."""
    pairs = torch.arange(head_dim // 2, device=positions.device, dtype=torch.float32)
    frequencies = theta ** (-2 * pairs / head_dim) * (pairs < int(fraction * head_dim // 2))
    angles = (positions[..., None].float() * frequencies)[:, None]
    return angles.cos(), angles.sin()


def rotate(x: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
    """Rotates the pairs (i, i + d / 2) of x [B, heads, n, d]."""
    cosine, sine = angles
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1).type_as(x)


def split_heads(x: Tensor, head_dim: int) -> Tensor:
    """[B, n, heads * d] -> [B, heads, n, d]"""
    return x.view(*x.shape[:-1], -1, head_dim).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """[B, heads, n, d] -> [B, n, heads * d]"""
    return x.transpose(1, 2).flatten(2)
