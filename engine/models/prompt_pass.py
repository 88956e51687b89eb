"""What the passes over pieces of prompts share in all families, with fused kernels between products; each family has
the rest of a layer in its folder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from torch import Tensor

from ..kernels.prefill.attention import chunk_attention
from ..kernels.prefill.products import product
from ..kernels.prefill.rope import norm_rope_split
from ..kv_cache.cache import Cache
from .family import AFTER_NORM, EMBEDDED
from .rows_pass import AttendingLayer
from .target import TargetModel, TargetOutput

Layer = TypeVar("Layer", bound=AttendingLayer)


class PromptPass(ABC, Generic[Layer]):
    """A target's forward pass over any number of rows, bound to one cache."""

    def __init__(
        self, target: TargetModel, first_norm: Callable[[Tensor], Tensor], layers: Sequence[Layer], cache: Cache
    ):
        self._target, self._first_norm, self._layers, self._cache = target, first_norm, layers, cache

    def __call__(self, ids: Tensor, start: int, cache: Cache, taps: Sequence[int] = ()) -> TargetOutput:
        """Runs a piece like ``TargetModel.forward``, but returns only the last row's ``hidden`` [1, hidden], even where
        that is tapped: the last layer runs other rows only up to their keys, unless it is tapped itself. Taps change no
        bit of ``hidden``."""
        assert cache is self._cache
        slots, hidden = {layer: slot for slot, layer in enumerate(taps)}, self._target.config.hidden_size
        x = self._target.embed(ids)
        normed = self._first_norm(x)
        features = x.new_empty(len(ids), len(taps) * hidden) if taps else None
        if features is not None and EMBEDDED in slots:
            features[:, slots[EMBEDDED] * hidden :][:, :hidden] = self._target.embedded(ids, x)
        for index, layer in enumerate(self._layers):
            heads, skipped, tapped = heads_of(layer, normed, start), 0, None
            if features is not None and index in slots:
                tapped = features[:, slots[index] * hidden :][:, :hidden]
            if index == len(self._layers) - 1:
                if tapped is not None:  # then, too, without the other rows: products round by how many rows they have
                    self._finish(layer, attended(layer, heads), x.clone(), tapped)
                skipped, tapped = len(x) - 1, None
            x = x[skipped:]
            normed = self._finish(layer, attended(layer, heads, skipped), x, tapped, skipped)
        if features is not None and AFTER_NORM in slots:
            features[-1, slots[AFTER_NORM] * hidden :][:hidden] = normed[-1]
        return TargetOutput(normed[-1:], features)

    @abstractmethod
    def _finish(self, layer: Layer, out: Tensor, x: Tensor, features: Tensor | None, skipped: int = 0) -> Tensor:
        """Goes from attention's output to the layer's, in x [n, hidden] from row ``skipped`` on; returns it normed.
        ``features``: a tapped layer's strided part."""


class Heads(NamedTuple):
    """Queries, keys and values of a piece's rows in one layer."""

    q: Tensor
    """[n, heads, head_dim]: queries, normed and turned."""
    k: Tensor
    """[kv_heads, seen, head_dim], like the values: those that these rows see."""
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
    """The heads of rows [n, hidden] that begin at ``start``; stores their keys and values in the layer's cache."""
    n, config, cache = len(normed), layer.config, layer.cache
    q = normed.new_empty(n, config.num_heads, config.head_dim)
    end, seen = start + n, None
    k, v = cache.k[:, :end], cache.v[:, :end]
    if config.window is not None:
        # A ring may not hold all that these rows see, and what they see may go around its end.
        first = cache.first_visible(start)
        shape = (config.num_kv_heads, end - first, config.head_dim)
        k, v = normed.new_empty(shape), normed.new_empty(shape)
        if first < start:
            for new, before in zip((k, v), cache.read(first, start), strict=True):
                new[:, : start - first].copy_(before)
        seen = k[:, start - first :], v[:, start - first :]
    norm_rope_split(
        product(normed, layer.qkv, bias=layer.added.qkv), layer.head_norms, layer.frequencies, (cache.k, cache.v), seen,
        end, q,
        value_is_key=config.value_is_key,
    )  # fmt: skip
    return Heads(q, k, v)
