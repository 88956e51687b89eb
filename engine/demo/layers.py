"""What the target and the drafter share: norms, rotary angles, and the two ways to run attention.

Models never decide who sees whom. They hand projected queries, keys and values to an ``Attend``: packed rows of
isolated documents while training, a key-value cache while generating. So one definition of the mathematics serves
both, and the parity test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, create_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(queries [B, heads, n, d], keys [B, kv_heads, m, d], values like keys) -> [B, heads, n, d]"""

Predicate = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""(batch, head, query index, key index) -> may this query see this key?"""


class RMSNorm(nn.Module):
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


class MaskedAttention:
    """Attention under a predicate: block-sparse on a GPU, a dense boolean mask elsewhere. Same predicate, same result.

    Every query must see at least one key.
    """

    def __init__(self, predicate: Predicate, batch: int, queries: int, keys: int, device: torch.device) -> None:
        build: Callable[..., BlockMask | Tensor] = create_block_mask if device.type == "cuda" else create_mask
        self.mask = build(predicate, batch, None, queries, keys, device=device)

    def with_scale(self, scale: float) -> Attend:
        return _ScaledAttention(self.mask, scale)


class _ScaledAttention:
    def __init__(self, mask: BlockMask | Tensor, scale: float) -> None:
        self.mask = mask
        self.scale = scale

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if isinstance(self.mask, Tensor):
            return scaled_dot_product_attention(q, k, v, self.mask, scale=self.scale, enable_gqa=True)
        out = flex_attention(q, k, v, block_mask=self.mask, scale=self.scale, enable_gqa=True)
        assert isinstance(out, Tensor)
        return out


def attend_grouped(q: Tensor, k: Tensor, v: Tensor, visible: Tensor, scale: float) -> Tensor:
    """Attention over a cache: queries of one group are stacked as rows, so that keys are read once per key head.

    ``visible`` is boolean [B, n, m]; every query must see at least one key.
    """
    batch, heads, n, d = q.shape
    groups = heads // k.shape[1]
    rows = q.reshape(batch, k.shape[1], groups * n, d)
    mask = visible[:, None].repeat(1, 1, groups, 1)
    return scaled_dot_product_attention(rows, k, v, mask, scale=scale).reshape(batch, heads, n, d)
