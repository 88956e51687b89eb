"""What prefill passes of all families share: from a piece's normed rows to what its attention mixes."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from ..kernels.prefill.attention import chunk_attention
from ..kernels.prefill.products import product
from ..kernels.prefill.rope import norm_rope_split
from .rows_pass import AttendingLayer


class Heads(NamedTuple):
    """Of a piece's rows, in one layer."""

    q: Tensor
    """[n, heads, head_dim]"""
    k: Tensor
    """[kv_heads, seen, head_dim], values too: what those rows see."""
    v: Tensor


def attended(layer: AttendingLayer, heads: Heads, skipped: int = 0) -> Tensor:
    """Attention's output [n - skipped, hidden] of a piece without its first ``skipped`` rows."""
    config = layer.config
    mixed = chunk_attention(
        heads.q[skipped:], heads.k, heads.v,
        causal=True, window=config.window, scale=config.scale, sinks=layer.added.sinks,
    )  # fmt: skip
    return product(mixed, layer.output, bias=layer.added.output)


def heads_of(layer: AttendingLayer, normed: Tensor, start: int) -> Heads:
    """Of rows [n, hidden] that begin at ``start``; the layer's cache takes their keys and values."""
    n, config, cache = len(normed), layer.config, layer.cache
    q = normed.new_empty(n, config.num_heads, config.head_dim)
    end, seen = start + n, None
    k, v = cache.k[:, :end], cache.v[:, :end]
    if config.window is not None:
        # A ring may have no room for all that these rows see, and what they see may lie around its end.
        first = cache.first_visible(start)
        shape = (config.num_kv_heads, end - first, config.head_dim)
        k, v = normed.new_empty(shape), normed.new_empty(shape)
        if first < start:
            for part, before in zip((k, v), cache.read(first, start), strict=True):
                part[:, : start - first].copy_(before)
        seen = k[:, start - first :], v[:, start - first :]
    norm_rope_split(
        product(normed, layer.qkv, bias=layer.added.qkv), layer.head_norms, layer.frequencies, (cache.k, cache.v), seen,
        end, q,
        value_is_key=config.value_is_key,
    )  # fmt: skip
    return Heads(q, k, v)
