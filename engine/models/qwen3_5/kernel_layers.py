"""The target's layers as kernels read them: merged weights, and the norm of what comes next, which is fp32."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ...kernels.reference.delta import DeltaWeights
from ...kernels.shared.heads import HeadNorms
from ...kernels.weights.kinds import weight_of
from ...kernels.weights.weight import Weight
from ...kv_cache.cache import Cache
from ...kv_cache.delta_state import DeltaState
from ...kv_cache.layer_cache import LayerCache
from ...layer_config import AttentionConfig, DeltaConfig
from ..layers import GatedMLP
from ..merged_weights import side_by_side
from ..pre_norm.modules import PreNormRouter
from ..rows_pass import NOTHING_ADDED, AddedTerms
from .modules import GatedDeltaNet, Qwen35Attention, Qwen35DecoderLayer, Qwen35SparseMLP, Qwen35Target


@dataclass(frozen=True, slots=True)
class AttendingMixer:
    """The gated attention of a layer, as kernels read it."""

    config: AttentionConfig
    cache: LayerCache
    frequencies: Tensor
    qkv: Weight
    """The weight whose rows make gates, then queries, keys and values."""
    head_norms: HeadNorms
    output: Weight
    added: AddedTerms = NOTHING_ADDED

    @property
    def columns(self) -> int:
        """The columns of all heads' queries together, heads * head_dim; those of the gates are as many."""
        return self.config.num_heads * self.config.head_dim


@dataclass(frozen=True, slots=True)
class RecurringMixer:
    """The gated delta net of a layer, as kernels read it."""

    config: DeltaConfig
    state: DeltaState
    rows: Weight
    """[channels + values, hidden]: makes the inputs of the convolution, then the gates of the outputs."""
    rates: Weight
    """[2 * value heads, hidden]: makes raw learning rates, then raw decays."""
    weights: DeltaWeights
    norm: Tensor
    output: Weight


@dataclass(frozen=True, slots=True)
class Routed:
    """A layer's router, and the expert that all rows share."""

    router: PreNormRouter
    gate_up: Weight
    """[2 * inter, hidden]: gate and up of the shared expert."""
    down: Weight
    """[hidden, inter]: its second weight."""
    gate: Tensor
    """[1, hidden]: says how much of the shared expert a row gets."""


@dataclass(frozen=True, slots=True)
class Qwen35KernelLayer:
    """One layer of a Qwen3.5 as kernels read it: merged weights, norms and what the cache keeps."""

    mixer: AttendingMixer | RecurringMixer
    middle_norm: Tensor
    """The norm before the MLP or the experts."""
    routed: Routed | None
    """Router and shared expert of a layer with experts; None for an MLP."""
    gate_up: Weight
    """The MLP's weight [2 * inter, hidden], or that of all routed experts [experts, 2 * inter, hidden]."""
    down: Weight
    next_norm: Tensor
    """The next layer's first norm, or the model's final one."""


def layers_of(target: Qwen35Target) -> list[Qwen35DecoderLayer]:
    return [module for module in target.layers if isinstance(module, Qwen35DecoderLayer)]


def kernel_layers(target: Qwen35Target, cache: Cache) -> list[Qwen35KernelLayer]:
    """Lays weights that are read together side by side; the target's modules keep using them."""
    modules = layers_of(target)
    next_norms = [module.input_layernorm.scales for module in modules[1:]] + [target.norm.scales]
    return [
        kernel_layer(module, state, target.frequencies, next_norm)
        for module, state, next_norm in zip(modules, cache.layers, next_norms, strict=True)
    ]


def kernel_layer(
    module: Qwen35DecoderLayer, state: object, frequencies: Tensor, next_norm: Tensor
) -> Qwen35KernelLayer:
    """One layer as kernels read it; merges its weights in place. ``state``: what the cache keeps for the layer."""
    return Qwen35KernelLayer(
        mixer=_mixer(module, state, frequencies),
        middle_norm=module.post_attention_layernorm.scales,
        routed=_routed(module.mlp) if isinstance(module.mlp, Qwen35SparseMLP) else None,
        gate_up=_gate_up(module.mlp),
        down=_down(module.mlp),
        next_norm=next_norm,
    )


def _routed(mlp: Qwen35SparseMLP) -> Routed:
    shared = mlp.shared_expert
    return Routed(mlp.gate, _gate_up(shared), _down(shared), mlp.shared_expert_gate.weight)


def _gate_up(mlp: GatedMLP | Qwen35SparseMLP) -> Weight:
    if isinstance(mlp, Qwen35SparseMLP):
        return weight_of(mlp.experts, "gate_up_proj")
    return side_by_side(mlp.gate_proj, mlp.up_proj)


def _down(mlp: GatedMLP | Qwen35SparseMLP) -> Weight:
    return weight_of(mlp.experts, "down_proj") if isinstance(mlp, Qwen35SparseMLP) else weight_of(mlp.down_proj)


def _mixer(module: Qwen35DecoderLayer, state: object, frequencies: Tensor) -> AttendingMixer | RecurringMixer:
    if isinstance(state, DeltaState):
        return _recurring(module.linear_attn, state)
    assert isinstance(state, LayerCache)
    return _attending(module.self_attn, state, frequencies)


def _attending(module: Qwen35Attention, cache: LayerCache, frequencies: Tensor) -> AttendingMixer:
    q, k = module.q_norm, module.k_norm
    return AttendingMixer(
        config=module.config,
        cache=cache,
        frequencies=frequencies,
        qkv=side_by_side(module.q_proj, module.k_proj, module.v_proj),
        head_norms=HeadNorms(q.scales, k.scales, q.eps, rounded_first=False, norm_values=False),
        output=weight_of(module.o_proj),
    )


def _recurring(module: GatedDeltaNet, state: DeltaState) -> RecurringMixer:
    if module.fused:
        rows, rates = weight_of(module.in_proj_qkvz), weight_of(module.in_proj_ba)
    else:
        rows = side_by_side(module.in_proj_qkv, module.in_proj_z)
        rates = side_by_side(module.in_proj_b, module.in_proj_a)
    return RecurringMixer(
        config=module.config,
        state=state,
        rows=rows,
        rates=rates,
        weights=module.row_weights,
        norm=module.norm.weight,
        output=weight_of(module.out_proj),
    )
