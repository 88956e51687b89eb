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
from ..pre_norm.modules import Router
from ..rows_pass import NOTHING_ADDED, AddedTerms
from .modules import Attention, DecoderLayer, GatedDeltaNet, Qwen35Target, SparseMLP


@dataclass(frozen=True, slots=True)
class AttendingMixer:
    """Of a layer that attends."""

    config: AttentionConfig
    cache: LayerCache
    frequencies: Tensor
    qkv: Weight
    """Gates, queries, keys, values."""
    head_norms: HeadNorms
    output: Weight
    added: AddedTerms = NOTHING_ADDED

    @property
    def columns(self) -> int:
        """Of all queries, or of all gates."""
        return self.config.num_heads * self.config.head_dim


@dataclass(frozen=True, slots=True)
class RecurringMixer:
    """Of a layer that recurs."""

    config: DeltaConfig
    state: DeltaState
    rows: Weight
    """[channels + values, hidden]: inputs of the convolution, gates."""
    rates: Weight
    """[2 * value heads, hidden]"""
    weights: DeltaWeights
    norm: Tensor
    output: Weight


@dataclass(frozen=True, slots=True)
class Routed:
    """What stands beside the experts of a layer."""

    router: Router
    gate_up: Weight
    """Of the expert that all rows share."""
    down: Weight
    gate: Tensor
    """[1, hidden]: how much of it a row gets."""


@dataclass(frozen=True, slots=True)
class KernelLayer:
    """One layer as the kernels read it."""

    mixer: AttendingMixer | RecurringMixer
    middle_norm: Tensor
    """Before the MLP."""
    routed: Routed | None
    """Of a layer with experts: gate_up and down are then those of all of them."""
    gate_up: Weight
    down: Weight
    next_norm: Tensor
    """The next layer's first, or the model's final norm."""


def layers_of(target: Qwen35Target) -> list[DecoderLayer]:
    return [module for module in target.layers if isinstance(module, DecoderLayer)]


def kernel_layers(target: Qwen35Target, cache: Cache) -> list[KernelLayer]:
    """Lays weights that are read together side by side; the target's modules keep using them."""
    modules = layers_of(target)
    next_norms = [module.input_layernorm.scales for module in modules[1:]] + [target.norm.scales]
    return [
        kernel_layer(module, state, target.frequencies, next_norm)
        for module, state, next_norm in zip(modules, cache.layers, next_norms, strict=True)
    ]


def kernel_layer(module: DecoderLayer, state: object, frequencies: Tensor, next_norm: Tensor) -> KernelLayer:
    """``state``: what the layer keeps. Merges as ``kernel_layers``."""
    return KernelLayer(
        mixer=_mixer(module, state, frequencies),
        middle_norm=module.post_attention_layernorm.scales,
        routed=_routed(module.mlp) if isinstance(module.mlp, SparseMLP) else None,
        gate_up=_gate_up(module.mlp),
        down=_down(module.mlp),
        next_norm=next_norm,
    )


def _routed(mlp: SparseMLP) -> Routed:
    shared = mlp.shared_expert
    return Routed(mlp.gate, _gate_up(shared), _down(shared), mlp.shared_expert_gate.weight)


def _gate_up(mlp: GatedMLP | SparseMLP) -> Weight:
    if isinstance(mlp, SparseMLP):
        return weight_of(mlp.experts, "gate_up_proj")
    return side_by_side(mlp.gate_proj, mlp.up_proj)


def _down(mlp: GatedMLP | SparseMLP) -> Weight:
    return weight_of(mlp.experts, "down_proj") if isinstance(mlp, SparseMLP) else weight_of(mlp.down_proj)


def _mixer(module: DecoderLayer, state: object, frequencies: Tensor) -> AttendingMixer | RecurringMixer:
    if isinstance(state, DeltaState):
        return _recurring(module.linear_attn, state)
    assert isinstance(state, LayerCache)
    return _attending(module.self_attn, state, frequencies)


def _attending(module: Attention, cache: LayerCache, frequencies: Tensor) -> AttendingMixer:
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
