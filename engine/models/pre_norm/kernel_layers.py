"""The target's layers as kernels read them: merged weights, and the norm that comes next."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ...kernels.shared.heads import HeadNorms
from ...kernels.weights.kinds import weight_of
from ...kernels.weights.weight import Weight
from ...kv_cache.cache import Cache
from ...kv_cache.layer_cache import LayerCache
from ...layer_config import AttentionConfig
from ..layers import GatedMLP
from ..merged_weights import biases_of, side_by_side
from ..rows_pass import AddedTerms
from .modules import PreNormDecoderLayer, PreNormRouter, PreNormTarget, SparseMLP


@dataclass(frozen=True, slots=True)
class PreNormExperts:
    """The experts of a layer that has them in place of its MLP. Biases are those of all experts, or None."""

    router: PreNormRouter
    gate_up_bias: Tensor | None
    """[experts, 2 * inter]: biases of gates and ups."""
    down_bias: Tensor | None
    """[experts, hidden]: biases of the outputs."""


@dataclass(frozen=True, slots=True)
class PreNormKernelLayer:
    """One layer of a pre-norm decoder as kernels read it: merged weights, norms and the cache."""

    config: AttentionConfig
    cache: LayerCache
    frequencies: Tensor
    qkv: Weight
    head_norms: HeadNorms
    output: Weight
    added: AddedTerms
    middle_norm: Tensor
    """The norm before the MLP or the experts."""
    routed: PreNormExperts | None
    gate_up: Weight
    """The MLP's weight [2 * inter, hidden], or that of all experts [experts, 2 * inter, hidden]."""
    down: Weight
    next_norm: Tensor
    """The next layer's first norm, or the model's final one."""


def layers_of(target: PreNormTarget) -> list[PreNormDecoderLayer]:
    return [module for module in target.layers if isinstance(module, PreNormDecoderLayer)]


def kernel_layers(target: PreNormTarget, cache: Cache) -> list[PreNormKernelLayer]:
    """Merges weights that are read together; the target's modules keep using them."""
    modules = layers_of(target)
    next_norms = [module.input_layernorm.weight for module in modules[1:]] + [target.norm.weight]
    return [
        _layer(module, layer_cache, target.frequencies, next_norm)
        for module, layer_cache, next_norm in zip(modules, cache.attention, next_norms, strict=True)
    ]


def _layer(
    module: PreNormDecoderLayer, cache: LayerCache, frequencies: Tensor, next_norm: Tensor
) -> PreNormKernelLayer:
    attention, mlp = module.self_attn, module.mlp
    projections = attention.q_proj, attention.k_proj, attention.v_proj
    q, k = (None if norm is None else norm.weight for norm in (attention.q_norm, attention.k_norm))
    if isinstance(mlp, SparseMLP):
        routed = PreNormExperts(mlp.gate, mlp.experts.gate_up_bias, mlp.experts.down_bias)
        gate_up, down = weight_of(mlp.experts, "gate_up_proj"), weight_of(mlp.experts, "down_proj")
    else:
        assert isinstance(mlp, GatedMLP)
        routed, gate_up, down = None, side_by_side(mlp.gate_proj, mlp.up_proj), weight_of(mlp.down_proj)
    return PreNormKernelLayer(
        config=attention.config,
        cache=cache,
        frequencies=frequencies,
        qkv=side_by_side(*projections),
        head_norms=HeadNorms(q, k, module.input_layernorm.eps, rounded_first=True, norm_values=False),
        output=weight_of(attention.o_proj),
        added=AddedTerms(biases_of(*projections), biases_of(attention.o_proj), attention.sinks),
        middle_norm=module.post_attention_layernorm.weight,
        routed=routed,
        gate_up=gate_up,
        down=down,
        next_norm=next_norm,
    )
