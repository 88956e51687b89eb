"""The target's pass over a piece of a prompt, with fused kernels between products: sixteen operations in a layer
instead of the eighty of ``modules.Gemma4``, which defines it."""

from __future__ import annotations

import torch
from torch import Tensor

from ...kernels.prefill.gate import gated_product
from ...kernels.prefill.norm import ExpertOutputs, join_attention, join_feed_forward, spread
from ...kernels.prefill.products import product
from ...kernels.prefill.route import route_many, router_scores
from ...kv_cache.cache import Cache
from ..prompt_pass import PromptPass
from .kernel_layers import Gemma4KernelLayer, kernel_layers
from .modules import Gemma4, Gemma4DecoderLayer


class Gemma4PrefillPass(PromptPass[Gemma4KernelLayer]):
    """A Gemma 4's pass over a piece of a prompt, bound to one cache."""

    def __init__(self, target: Gemma4, cache: Cache):
        """Lays the target's merged weights side by side, which its modules keep using."""
        first = target.layers[0]
        assert isinstance(first, Gemma4DecoderLayer)
        super().__init__(target, first.input_layernorm, kernel_layers(target, cache), cache)

    def _finish(
        self, layer: Gemma4KernelLayer, out: Tensor, x: Tensor, features: Tensor | None, skipped: int = 0
    ) -> Tensor:
        normed, eps = torch.empty_like(x), layer.head_norms.eps
        routed = torch.empty_like(x) if layer.routed else None
        join_attention(out, x, layer.attention_join, eps, normed, routed)
        dense = product(gated_product(normed, layer.gate_up), layer.down)
        sparse = None if routed is None else self._run_experts(layer, x, routed, skipped)
        join_feed_forward(dense, sparse, x, layer.feed_forward_join, eps, normed, features)
        return normed

    def _run_experts(self, layer: Gemma4KernelLayer, x: Tensor, routed: Tensor, skipped: int) -> ExpertOutputs:
        assert layer.routed is not None and layer.attention_join.pre_experts is not None
        router = layer.routed.router
        scores = router_scores(routed, router.proj.weight)
        if router.forced is not None:
            scores = router.forced[skipped % len(router.forced) :]
        routed_rows = route_many(scores, len(x), router.top_k, router.per_expert_scale)
        rows = spread(x, layer.attention_join.pre_experts, router.eps, routed_rows.places)
        act = gated_product(rows, layer.routed.gate_up, routed_rows.ends)
        out = product(act, layer.routed.down, routed_rows.ends)
        return ExpertOutputs(out, routed_rows.places, routed_rows.weights)
