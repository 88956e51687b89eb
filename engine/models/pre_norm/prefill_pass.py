"""The target's pass over a piece of a prompt, with fused kernels between products; ``modules.PreNormTarget`` defines
it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ...kernels.prefill.attention import chunk_attention
from ...kernels.prefill.gate import gated_product
from ...kernels.prefill.norm import ExpertOutputs, join, spread
from ...kernels.prefill.rope import norm_rope_split
from ...kernels.prefill.route import route_many, router_scores
from ...kv_cache.cache import Cache
from ..target import TargetOutput
from .kernel_layers import KernelLayer, kernel_layers, layers_of
from .modules import PreNormTarget, Router


class PrefillPass:
    """The forward pass, bound to one cache."""

    def __init__(self, target: PreNormTarget, cache: Cache):
        """Lays the target's merged weights side by side, which its modules keep using."""
        self._target, self._cache = target, cache
        self._layers = kernel_layers(target, cache)

    def __call__(self, ids: Tensor, start: int, cache: Cache, taps: Sequence[int] = ()) -> TargetOutput:
        """``PreNormTarget.forward``, with the last row's ``hidden`` [1, hidden] alone: the last layer, unless tapped,
        runs other rows only up to their keys."""
        assert cache is self._cache
        target, hidden = self._target, self._target.config.hidden_size
        slots = {layer: slot for slot, layer in enumerate(taps)}
        x = target.embed(ids)
        normed = layers_of(target)[0].input_layernorm(x)
        features = x.new_empty(len(ids), len(taps) * hidden) if taps else None
        for index, layer in enumerate(self._layers):
            q, k, v = self._heads(layer, normed, start)
            skipped = 0
            if index == len(self._layers) - 1 and index not in slots:
                skipped = len(x) - 1
                q, x = q[skipped:], x[skipped:]
            mixed = chunk_attention(q, k, v, causal=True, window=None, scale=layer.config.scale)
            tapped = None
            if features is not None and index in slots:
                tapped = features[:, slots[index] * hidden :][:, :hidden]
            normed = self._finish(layer, mixed, x, tapped, skipped)
        return TargetOutput(normed[-1:], features)

    def _heads(self, layer: KernelLayer, normed: Tensor, start: int) -> tuple[Tensor, Tensor, Tensor]:
        """Queries [n, heads, head_dim] of rows that begin at ``start``, and the keys and values that they see."""
        end, config, cache = start + len(normed), layer.config, layer.cache
        q = normed.new_empty(len(normed), config.num_heads, config.head_dim)
        projected = layer.qkv.linear(normed)
        norm_rope_split(projected, layer.head_norms, layer.frequencies, (cache.k, cache.v), None, end, q)
        return q, cache.k[:, :end], cache.v[:, :end]

    def _finish(self, layer: KernelLayer, mixed: Tensor, x: Tensor, features: Tensor | None, skipped: int) -> Tensor:
        """From attention's heads to the layer's output, in x [n, hidden], ``skipped`` rows in; returns it normed."""
        normed, eps = torch.empty_like(x), layer.head_norms.eps
        join(layer.output.linear(mixed), None, x, layer.middle_norm, eps, normed)
        dense = sparse = None
        if layer.router is None:
            dense = layer.down.linear(gated_product(normed, layer.gate_up, activation=self._target.config.activation))
        else:
            sparse = self._run_experts(layer, layer.router, normed, skipped)
        join(dense, sparse, x, layer.next_norm, eps, normed, features)
        return normed

    def _run_experts(self, layer: KernelLayer, router: Router, normed: Tensor, skipped: int) -> ExpertOutputs:
        scores = router_scores(normed, router.weight)
        if router.forced is not None:
            scores = router.forced[skipped % len(router.forced) :]
        found = route_many(scores, len(normed), router.top_k, None)
        rows = spread(normed, None, 0.0, found.places)
        act = gated_product(rows, layer.gate_up, found.ends, self._target.config.activation)
        return ExpertOutputs(layer.down.grouped(act, found.ends), found.places, found.weights)
