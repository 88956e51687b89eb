"""Attention of query rows over cached keys: grouped queries, sliding windows, causal or not. ``reference_attention``
defines it, the others are faster. Queries q [n, heads, d] stand at the last n positions of k and v [kv_heads, keys, d];
heads is a multiple of kv_heads. The result is [n, heads * d] in q's dtype. ``sinks`` [heads] are scores that take part
in each head's softmax and attend nothing."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import torch
from torch import Tensor

SCORES = 1 << 24
"""The most scores that are held at a time, where they are held at all: 64 MB."""


class AttentionFunction(Protocol):
    """Attends from q [n, heads, head_dim] to k, v [kv_heads, keys, head_dim], of which the last n are of the same rows;
    returns [n, heads * head_dim]. ``causal`` hides keys behind the query, ``window`` those at that distance or
    farther."""

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, *, causal: bool, window: int | None, scale: float
    ) -> Tensor: ...


def visible_keys(query_positions: Tensor, key_positions: Tensor, *, causal: bool, window: int | None) -> Tensor:
    """Keys each query sees, bool [queries, keys]: causal at or before, windowed fewer than ``window`` away."""
    distance = query_positions[:, None] - key_positions[None, :]
    visible = distance >= 0 if causal else torch.ones_like(distance, dtype=torch.bool)
    if window is not None:
        visible = visible & (distance.abs() < window)
    return visible


def reference_attention(
    q: Tensor, k: Tensor, v: Tensor, *, causal: bool, window: int | None, scale: float, sinks: Tensor | None = None
) -> Tensor:
    """``AttentionFunction`` with scores and softmax in fp32; ``sinks`` [heads] join each softmax as a score without a
    value."""
    rows = _group_rows(q, k.shape[0])
    scores = torch.matmul(rows.float() * scale, k.float().mT)
    visible = _mask(q, k, causal, window)
    if visible is not None:
        scores = scores.masked_fill(~visible, float("-inf"))
    if sinks is not None:
        column = sinks.float().view(len(k), -1, 1).expand(-1, -1, len(q)).reshape(len(k), -1, 1)
        scores = torch.cat((scores, column), dim=-1)
    weights = scores.softmax(dim=-1)[..., : k.shape[1]]
    return _ungroup_rows(torch.matmul(weights, v.float()).to(q.dtype), q)


def sink_attention(q: Tensor, k: Tensor, v: Tensor, sinks: Tensor, *, window: int | None, scale: float) -> Tensor:
    """``reference_attention`` of causal queries with sinks, some queries at a time: PyTorch's kernels know no sinks."""
    n, num_keys = q.shape[0], k.shape[1]
    step = max(1, SCORES // (q.shape[1] * num_keys))
    mixed = []
    for start in range(0, n, step):
        rows = q[start : start + step]
        end = num_keys - n + start + len(rows)
        first = 0 if window is None else max(0, end - len(rows) - window + 1)
        seen = k[:, first:end], v[:, first:end]
        mixed.append(reference_attention(rows, *seen, causal=True, window=window, scale=scale, sinks=sinks))
    return torch.cat(mixed)


def sdpa_attention(q: Tensor, k: Tensor, v: Tensor, *, causal: bool, window: int | None, scale: float) -> Tensor:
    """``AttentionFunction`` by PyTorch's own kernels, in k's dtype. Grouped queries become rows, since not all of those
    kernels know groups."""
    rows = _group_rows(q.to(k.dtype), k.shape[0])
    mixed = torch.nn.functional.scaled_dot_product_attention(
        rows[None], k[None], v[None], attn_mask=_mask(q, k, causal, window), scale=scale
    )
    return _ungroup_rows(mixed[0], q).to(q.dtype)


def flash_attention(q: Tensor, k: Tensor, v: Tensor, *, causal: bool, window: int | None, scale: float) -> Tensor:
    """``AttentionFunction`` by the ``flash_attn`` package: on CUDA, for 16-bit floats and heads of at most 256."""
    from flash_attn import flash_attn_func

    reach = -1 if window is None else window - 1
    mixed: Tensor = flash_attn_func(
        q[None],
        k.transpose(0, 1)[None],
        v.transpose(0, 1)[None],
        softmax_scale=scale,
        causal=causal,
        window_size=(reach, 0 if causal else reach),
    )
    return mixed[0].flatten(1)


def _mask(q: Tensor, k: Tensor, causal: bool, window: int | None) -> Tensor | None:
    """bool [group * n, keys] for grouped rows; None where every query sees every key."""
    n, num_keys = q.shape[0], k.shape[1]
    if (n == 1 or not causal) and (window is None or num_keys <= window):
        return None
    make = _last_masks if k.device.type == "cpu" else _mask_of
    return make(n, num_keys, q.shape[1] // k.shape[0], causal, window, k.device)


@torch.inference_mode(False)  # training can't save tensors that were made in inference mode
def _mask_of(n: int, num_keys: int, group: int, causal: bool, window: int | None, device: torch.device) -> Tensor:
    keys = torch.arange(num_keys, device=device)
    return visible_keys(keys[-n:], keys, causal=causal, window=window).repeat(group, 1)


_last_masks = lru_cache(maxsize=4)(_mask_of)
"""Layers of one kind share a mask in a pass. A GPU's masks are too large to keep."""


def _group_rows(q: Tensor, kv_heads: int) -> Tensor:
    """[kv_heads, group * n, d]: the queries that share keys become rows of one product."""
    n, heads, d = q.shape
    if n == 1:
        return q.reshape(kv_heads, -1, d)
    return q.view(n, kv_heads, heads // kv_heads, d).permute(1, 2, 0, 3).reshape(kv_heads, -1, d)


def _ungroup_rows(rows: Tensor, q: Tensor) -> Tensor:
    n, heads, d = q.shape
    if n == 1:
        return rows.reshape(1, heads * d)
    return rows.view(rows.shape[0], -1, n, d).permute(2, 0, 1, 3).reshape(n, heads * d)
