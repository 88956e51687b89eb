"""The target's pass over a piece of a prompt, with fused kernels between products; ``modules.PreNormTarget`` defines
it."""

from __future__ import annotations

import torch
from torch import Tensor

from ...kernels.prefill.gate import gated_product
from ...kernels.prefill.norm import ExpertOutputs, join, spread
from ...kernels.prefill.products import product
from ...kernels.prefill.route import route_many, router_scores
from ...kv_cache.cache import Cache
from ..prompt_pass import PromptPass
from .kernel_layers import PreNormExperts, PreNormKernelLayer, kernel_layers, layers_of
from .modules import PreNormTarget


class PreNormPrefillPass(PromptPass[PreNormKernelLayer]):
    """A pre-norm decoder's pass over a piece of a prompt, bound to one cache."""

    _target: PreNormTarget

    def __init__(self, target: PreNormTarget, cache: Cache):
        """Lays the target's merged weights side by side, which its modules keep using."""
        super().__init__(target, layers_of(target)[0].input_layernorm, kernel_layers(target, cache), cache)

    def _finish(
        self, layer: PreNormKernelLayer, out: Tensor, x: Tensor, features: Tensor | None, skipped: int = 0
    ) -> Tensor:
        normed, eps, style = torch.empty_like(x), layer.head_norms.eps, self._target.config.norm_style
        join(out, None, x, layer.middle_norm, eps, normed, style)
        dense = sparse = None
        if layer.routed is None:
            dense = product(gated_product(normed, layer.gate_up, activation=self._target.config.activation), layer.down)
        else:
            sparse = self._run_experts(layer, layer.routed, normed, skipped)
        join(dense, sparse, x, layer.next_norm, eps, normed, style, features)
        return normed

    def _run_experts(
        self, layer: PreNormKernelLayer, routed: PreNormExperts, normed: Tensor, skipped: int
    ) -> ExpertOutputs:
        router = routed.router
        scores = router_scores(normed, router.weight, router.bias)
        if router.forced is not None:
            scores = router.forced[skipped % len(router.forced) :]
        routed_rows = route_many(scores, len(normed), router.top_k, None)
        rows = spread(normed, None, 0.0, routed_rows.places)
        act = gated_product(rows, layer.gate_up, routed_rows.ends, self._target.config.activation, routed.gate_up_bias)
        out = product(act, layer.down, routed_rows.ends, routed.down_bias)
        return ExpertOutputs(out, routed_rows.places, routed_rows.weights)
