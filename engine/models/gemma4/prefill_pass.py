"""The target's pass over a piece of a prompt, with fused kernels between products: sixteen operations a layer instead
of the eighty of ``modules.Gemma4``, which defines it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ...kernels.prefill.gate import gated_product
from ...kernels.prefill.norm import ExpertOutputs, join_attention, join_feed_forward, spread
from ...kernels.prefill.route import route_many, router_scores
from ...kv_cache.cache import Cache
from ..family import AFTER_NORM
from ..prompt_heads import attended, heads_of
from ..target import TargetOutput
from .kernel_layers import KernelLayer, kernel_layers
from .modules import DecoderLayer, Gemma4


class PrefillPass:
    """The forward pass, bound to one cache."""

    def __init__(self, target: Gemma4, cache: Cache):
        """Lays the target's merged weights side by side, which its modules keep using."""
        self._target, self._cache = target, cache
        self._layers = kernel_layers(target, cache)

    def __call__(self, ids: Tensor, start: int, cache: Cache, taps: Sequence[int] = ()) -> TargetOutput:
        """``Gemma4.forward``, with the last row's ``hidden`` [1, hidden] alone, also where that is tapped: the last
        layer runs other rows only up to their keys, unless tapped itself. Taps change no bit of ``hidden``."""
        assert cache is self._cache
        target = self._target
        slots = {layer: slot for slot, layer in enumerate(taps)}
        first, hidden = target.layers[0], target.config.hidden_size
        assert isinstance(first, DecoderLayer)
        x = target.embed(ids)
        normed = first.input_layernorm(x)
        features = x.new_empty(len(ids), len(taps) * hidden) if taps else None
        for index, layer in enumerate(self._layers):
            heads, skipped, tapped = heads_of(layer, normed, start), 0, None
            if features is not None and index in slots:
                tapped = features[:, slots[index] * hidden :][:, :hidden]
            if index == len(self._layers) - 1:
                if tapped is not None:  # then without the rest all the same: products round by how many rows they have
                    self._finish(layer, attended(layer, heads), x.clone(), tapped)
                skipped, tapped = len(x) - 1, None
            x = x[skipped:]
            normed = self._finish(layer, attended(layer, heads, skipped), x, tapped, skipped)
        if features is not None and AFTER_NORM in slots:
            features[-1, slots[AFTER_NORM] * hidden :][:hidden] = normed[-1]
        return TargetOutput(normed[-1:], features)

    def _finish(self, layer: KernelLayer, out: Tensor, x: Tensor, features: Tensor | None, skipped: int = 0) -> Tensor:
        """From attention's output to the layer's, in x [n, hidden], ``skipped`` rows in; returns it normed."""
        normed, eps = torch.empty_like(x), layer.head_norms.eps
        routed = torch.empty_like(x) if layer.routed else None
        join_attention(out, x, layer.attention_join, eps, normed, routed)
        dense = layer.down.linear(gated_product(normed, layer.gate_up))
        sparse = None if routed is None else self._run_experts(layer, x, routed, skipped)
        join_feed_forward(dense, sparse, x, layer.feed_forward_join, eps, normed, features)
        return normed

    def _run_experts(self, layer: KernelLayer, x: Tensor, routed: Tensor, skipped: int) -> ExpertOutputs:
        assert layer.routed is not None and layer.attention_join.pre_experts is not None
        router = layer.routed.router
        scores = router_scores(routed, router.proj.weight)
        if router.forced is not None:
            scores = router.forced[skipped % len(router.forced) :]
        found = route_many(scores, len(x), router.top_k, router.per_expert_scale)
        rows = spread(x, layer.attention_join.pre_experts, router.eps, found.places)
        act = gated_product(rows, layer.routed.gate_up, found.ends)
        out = layer.routed.down.grouped(act, found.ends)
        return ExpertOutputs(out, found.places, found.weights)
