"""The target's pass over a piece of a prompt, with fused kernels between products; ``modules.PreNormTarget`` defines
it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ...kernels.prefill.gate import gated_product
from ...kernels.prefill.norm import ExpertOutputs, join, spread
from ...kernels.prefill.products import product
from ...kernels.prefill.route import route_many, router_scores
from ...kv_cache.cache import Cache
from ..prompt_heads import attended, heads_of
from ..target import TargetOutput
from .kernel_layers import KernelLayer, RoutedExperts, kernel_layers, layers_of
from .modules import PreNormTarget


class PrefillPass:
    """The forward pass, bound to one cache."""

    def __init__(self, target: PreNormTarget, cache: Cache):
        """Lays the target's merged weights side by side, which its modules keep using."""
        self._target, self._cache = target, cache
        self._layers = kernel_layers(target, cache)

    def __call__(self, ids: Tensor, start: int, cache: Cache, taps: Sequence[int] = ()) -> TargetOutput:
        """``PreNormTarget.forward``, with the last row's ``hidden`` [1, hidden] alone: the last layer runs other rows
        only up to their keys, unless tapped. Taps change no bit of ``hidden``."""
        assert cache is self._cache
        target, hidden = self._target, self._target.config.hidden_size
        slots = {layer: slot for slot, layer in enumerate(taps)}
        x = target.embed(ids)
        normed = layers_of(target)[0].input_layernorm(x)
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
        return TargetOutput(normed[-1:], features)

    def _finish(self, layer: KernelLayer, out: Tensor, x: Tensor, features: Tensor | None, skipped: int = 0) -> Tensor:
        """From attention's output to the layer's, in x [n, hidden], ``skipped`` rows in; returns it normed."""
        normed, eps, style = torch.empty_like(x), layer.head_norms.eps, self._target.config.norm_style
        join(out, None, x, layer.middle_norm, eps, normed, style)
        dense = sparse = None
        if layer.routed is None:
            dense = layer.down.linear(gated_product(normed, layer.gate_up, activation=self._target.config.activation))
        else:
            sparse = self._run_experts(layer, layer.routed, normed, skipped)
        join(dense, sparse, x, layer.next_norm, eps, normed, style, features)
        return normed

    def _run_experts(self, layer: KernelLayer, routed: RoutedExperts, normed: Tensor, skipped: int) -> ExpertOutputs:
        router = routed.router
        scores = router_scores(normed, router.weight, router.bias)
        if router.forced is not None:
            scores = router.forced[skipped % len(router.forced) :]
        found = route_many(scores, len(normed), router.top_k, None)
        rows = spread(normed, None, 0.0, found.places)
        act = gated_product(rows, layer.gate_up, found.ends, self._target.config.activation, routed.gate_up_bias)
        out = product(act, layer.down, found.ends, routed.down_bias)
        return ExpertOutputs(out, found.places, found.weights)
