"""What prefill passes of all families share: from a piece's normed rows to what its attention mixes."""

from __future__ import annotations

from torch import Tensor

from ..kernels.prefill.attention import chunk_attention
from ..kernels.prefill.products import product
from ..kernels.prefill.rope import norm_rope_split
from .rows_pass import AttendingLayer


def attended(layer: AttendingLayer, normed: Tensor, start: int, skipped: int = 0) -> Tensor:
    """Attention's output [n - skipped, hidden] of rows [n, hidden] that begin at ``start``, without the first
    ``skipped``; the layer's cache takes the keys and values of all."""
    config = layer.config
    q, k, v = _heads(layer, normed, start)
    mixed = chunk_attention(
        q[skipped:], k, v, causal=True, window=config.window, scale=config.scale, sinks=layer.added.sinks
    )
    return product(mixed, layer.output, bias=layer.added.output)


def _heads(layer: AttendingLayer, normed: Tensor, start: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries [n, heads, head_dim] of rows that begin at ``start``, and the keys and values that they see."""
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
    return q, k, v
