"""The target's layers as kernels read them: merged weights, and the norms that one launch applies together."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ...kernels.reference.joins import AttentionJoin, FeedForwardJoin
from ...kernels.shared.heads import HeadNorms
from ...kernels.weights.kinds import weight_of
from ...kernels.weights.weight import Weight
from ...kv_cache.cache import Cache
from ...kv_cache.layer_cache import LayerCache
from ...layer_config import AttentionConfig
from ..layers import Experts
from ..merged_weights import side_by_side
from ..rows_pass import NOTHING_ADDED, AddedTerms
from .modules import DecoderLayer, Gemma4, Router


@dataclass(frozen=True, slots=True)
class RoutedExperts:
    """The expert part of one layer."""

    router: Router
    gate_up: Weight
    down: Weight


@dataclass(frozen=True, slots=True)
class KernelLayer:
    """One layer as the kernels read it."""

    config: AttentionConfig
    cache: LayerCache
    frequencies: Tensor
    qkv: Weight
    head_norms: HeadNorms
    output: Weight
    attention_join: AttentionJoin
    gate_up: Weight
    down: Weight
    routed: RoutedExperts | None
    feed_forward_join: FeedForwardJoin
    added: AddedTerms = NOTHING_ADDED


def kernel_layers(target: Gemma4, cache: Cache) -> list[KernelLayer]:
    modules = [module for module in target.layers if isinstance(module, DecoderLayer)]
    # Each layer's last kernel applies the norm that comes next.
    next_norms = [module.input_layernorm.weight for module in modules[1:]] + [target.norm.weight]
    return [
        _layer(module, layer_cache, target.frequencies[module.self_attn.config.rope], next_norm)
        for module, layer_cache, next_norm in zip(modules, cache.attention, next_norms, strict=True)
    ]


def _layer(module: DecoderLayer, cache: LayerCache, frequencies: Tensor, next_norm: Tensor) -> KernelLayer:
    attention, mlp, sparse = module.self_attn, module.mlp, module.has_experts
    projections = [attention.q_proj, attention.k_proj, *([] if attention.v_proj is None else [attention.v_proj])]
    q_norm, k_norm = attention.q_norm.weight, attention.k_norm.weight
    return KernelLayer(
        config=attention.config,
        cache=cache,
        frequencies=frequencies,
        qkv=side_by_side(*projections),
        head_norms=HeadNorms(q_norm, k_norm, attention.eps, rounded_first=False, norm_values=True),
        output=weight_of(attention.o_proj),
        attention_join=AttentionJoin(
            module.post_attention_layernorm.weight,
            module.pre_feedforward_layernorm.weight,
            module.pre_feedforward_layernorm_2.weight if sparse else None,
            module.router.scale if sparse else None,
        ),
        gate_up=side_by_side(mlp.gate_proj, mlp.up_proj),
        down=weight_of(mlp.down_proj),
        routed=_routed(module.router, module.experts) if sparse else None,
        feed_forward_join=FeedForwardJoin(
            module.post_feedforward_layernorm_1.weight if sparse else None,
            module.post_feedforward_layernorm_2.weight if sparse else None,
            module.post_feedforward_layernorm.weight,
            module.layer_scalar,
            next_norm,
        ),
    )


def _routed(router: Router, experts: Experts) -> RoutedExperts:
    return RoutedExperts(router, weight_of(experts, "gate_up_proj"), weight_of(experts, "down_proj"))
