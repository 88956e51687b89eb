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
from ..merged_weights import side_by_side
from ..rows_pass import NOTHING_ADDED, AddedTerms
from .modules import Gemma4, Gemma4Attention, Gemma4DecoderLayer, Gemma4Router


@dataclass(frozen=True, slots=True)
class Gemma4Experts:
    """The router and the experts of one layer, as kernels read them."""

    router: Gemma4Router
    gate_up: Weight
    down: Weight


@dataclass(frozen=True, slots=True)
class Gemma4KernelLayer:
    """One layer of a Gemma 4 as kernels read it: merged weights, norms and the cache."""

    config: AttentionConfig
    cache: LayerCache
    frequencies: Tensor
    qkv: Weight
    head_norms: HeadNorms
    output: Weight
    attention_join: AttentionJoin
    gate_up: Weight
    down: Weight
    routed: Gemma4Experts | None
    feed_forward_join: FeedForwardJoin
    added: AddedTerms = NOTHING_ADDED


def kernel_layers(target: Gemma4, cache: Cache) -> list[Gemma4KernelLayer]:
    modules = [module for module in target.layers if isinstance(module, Gemma4DecoderLayer)]
    # Each layer's last kernel applies the norm that comes next.
    next_norms = [module.input_layernorm.weight for module in modules[1:]] + [target.norm.weight]
    return [
        _layer(module, layer_cache, target.frequencies[module.self_attn.config.rope], next_norm)
        for module, layer_cache, next_norm in zip(modules, cache.attention, next_norms, strict=True)
    ]


def _layer(module: Gemma4DecoderLayer, cache: LayerCache, frequencies: Tensor, next_norm: Tensor) -> Gemma4KernelLayer:
    attention, mlp, sparse = module.self_attn, module.mlp, module.has_experts
    projections = [attention.q_proj, attention.k_proj, *([] if attention.v_proj is None else [attention.v_proj])]
    attention_join, feed_forward_join = joins_of(module, next_norm)
    routed = None
    if sparse:
        experts = module.experts
        routed = Gemma4Experts(module.router, weight_of(experts, "gate_up_proj"), weight_of(experts, "down_proj"))
    return Gemma4KernelLayer(
        config=attention.config,
        cache=cache,
        frequencies=frequencies,
        qkv=side_by_side(*projections),
        head_norms=head_norms_of(attention),
        output=weight_of(attention.o_proj),
        attention_join=attention_join,
        gate_up=side_by_side(mlp.gate_proj, mlp.up_proj),
        down=weight_of(mlp.down_proj),
        routed=routed,
        feed_forward_join=feed_forward_join,
    )


def head_norms_of(attention: Gemma4Attention) -> HeadNorms:
    norms = attention.q_norm.weight, attention.k_norm.weight
    return HeadNorms(*norms, attention.eps, rounded_first=False, norm_values=True)


def joins_of(module: Gemma4DecoderLayer, next_norm: Tensor) -> tuple[AttentionJoin, FeedForwardJoin]:
    """What stands behind a layer's attention, and behind its MLP; ``next_norm`` comes behind the layer."""
    sparse = module.has_experts
    return AttentionJoin(
        module.post_attention_layernorm.weight,
        module.pre_feedforward_layernorm.weight,
        module.pre_feedforward_layernorm_2.weight if sparse else None,
        module.router.scale if sparse else None,
    ), FeedForwardJoin(
        module.post_feedforward_layernorm_1.weight if sparse else None,
        module.post_feedforward_layernorm_2.weight if sparse else None,
        module.post_feedforward_layernorm.weight,
        module.layer_scalar,
        next_norm,
    )
