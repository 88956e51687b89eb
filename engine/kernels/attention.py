"""Attention of a few query rows over cached keys: grouped queries, sliding windows, causal or not."""

from __future__ import annotations

import torch
from torch import Tensor


def visible_keys(query_positions: Tensor, key_positions: Tensor, *, causal: bool, window: int | None) -> Tensor:
    """Which keys each query sees, bool [queries, keys].

    Causal: keys at or before the query. Windowed: fewer than ``window`` positions away, on either side.
    """
    distance = query_positions[:, None] - key_positions[None, :]
    visible = distance >= 0 if causal else torch.ones_like(distance, dtype=torch.bool)
    if window is not None:
        visible = visible & (distance.abs() < window)
    return visible


def attention(q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None, scale: float) -> Tensor:
    """Softmax attention, scores and softmax in fp32.

    ``q`` [n, heads, d]; ``k``, ``v`` [kv_heads, keys, d], heads a multiple of kv_heads; ``visible`` bool [n, keys],
    None when every query sees every key. Returns [n, heads * d] in q's dtype.
    """
    n, heads, d = q.shape
    kv_heads, keys, _ = k.shape
    # The queries of one group share keys, so they become rows of one product: [kv_heads, group * n, d].
    rows = q.view(n, kv_heads, heads // kv_heads, d).permute(1, 2, 0, 3).reshape(kv_heads, -1, d)
    scores = torch.matmul(rows.float() * scale, k.float().mT)
    if visible is not None:
        scores = scores.view(kv_heads, -1, n, keys).masked_fill(~visible, float("-inf")).view(kv_heads, -1, keys)
    mixed = torch.matmul(scores.softmax(dim=-1), v.float()).to(q.dtype)
    return mixed.view(kv_heads, -1, n, d).permute(2, 0, 1, 3).reshape(n, heads * d)
