"""Reads a Gemma 4's ``config.json``. Field names in comments are those of ``google/gemma-4-*``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ...errors import Option, WeightsFailure
from ...files.json_fields import Fields
from ...layer_config import (
    GELU_TANH,
    KINDS,
    MAX_EXPERTS,
    MAX_HEADS,
    MAX_LAYERS,
    MAX_POSITIONS,
    MAX_SIZE,
    MAX_THETA,
    MAX_VOCABULARY,
    AttentionConfig,
    LayerKind,
    MoeConfig,
    RopeConfig,
    optional_number,
    read_head_dim,
    read_num_heads,
    rope_fields,
)
from ..family import Json, TargetConfig, read_stops

if TYPE_CHECKING:
    from .modules import Gemma4

OWN_DRAFTER = ("Name the target's own drafter with ", Option("drafter"), ".")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemma4Config(TargetConfig):
    """A Gemma 4 text model (``text_config`` of the checkpoint's config.json)."""

    @classmethod
    def from_json(cls, config: Json, generation: Json | None = None) -> Gemma4Config:
        """Reads ``config.json``, stop tokens from ``generation_config.json``; ``WeightsFailure`` if unsupported."""
        whole = Fields(config, "config.json")
        text = whole.nested("text_config") if "text_config" in whole else whole
        _require_what_the_engine_computes(whole, text)
        vocab_size = text.integer("vocab_size", 1, MAX_VOCABULARY)
        return cls(
            hidden_size=text.integer("hidden_size", 1, MAX_SIZE),
            intermediate_size=text.integer("intermediate_size", 1, MAX_SIZE), vocab_size=vocab_size,
            rms_norm_eps=text.number("rms_norm_eps", 0, 1),
            logit_softcap=optional_number(text, "final_logit_softcapping"),
            max_context=text.integer("max_position_embeddings", 1, MAX_POSITIONS), layers=read_layers(text),
            moe=_moe(text) if text.flag("enable_moe_block", False) else None,
            stop_token_ids=read_stops(whole, generation, vocab_size),
        )  # fmt: skip

    def build(self) -> Gemma4:
        from .modules import Gemma4

        return Gemma4(self)


def _require_what_the_engine_computes(whole: Fields, text: Fields) -> None:
    """Refuses per-layer embeddings, and variants that no published Gemma 4 has: those would compute something else."""
    if text.given("hidden_size_per_layer_input") or text.given("num_kv_shared_layers"):
        raise WeightsFailure(
            "This Gemma 4 uses per-layer embeddings (E2B, E4B), which the engine lacks: no drafter exists for it.",
            "Use gemma-4-12B-it, gemma-4-26B-A4B-it or gemma-4-31B-it.",
        )
    text.text("hidden_activation", GELU_TANH, "gelu_pytorch_tanh")
    if text.flag("attention_bias", False):
        raise WeightsFailure("This checkpoint's attention adds biases (attention_bias).", "Name an original Gemma 4.")
    for fields in (whole, text):
        if not fields.flag("tie_word_embeddings", True):
            raise WeightsFailure("This checkpoint has an output head of its own.", "Name an original Gemma 4.")


def read_drafters_layers(fields: Fields) -> tuple[AttentionConfig, ...]:
    """The layers of a drafter that are this family's own, all of them full, as DeepSpec trains them on a copy of the
    target's config. Raises ``WeightsFailure`` for variants of them that are not computed."""
    fields.text("hidden_activation", GELU_TANH, "gelu_pytorch_tanh")
    layers = read_layers(fields)
    absent = ("attention_bias", "enable_moe_block", "hidden_size_per_layer_input", "num_kv_shared_layers")
    for name in (each for each in absent if fields.given(each)):
        raise WeightsFailure(f"This drafter's layers have what the engine's have not ({name}).", OWN_DRAFTER)
    if any(layer.kind != "full_attention" for layer in layers):
        raise WeightsFailure("This drafter's layers see a window of the text (layer_types), none should.", OWN_DRAFTER)
    return layers


def read_layers(text: Fields) -> tuple[AttentionConfig, ...]:
    depth = text.integer("num_hidden_layers", 1, MAX_LAYERS)
    kinds = text.texts("layer_types", KINDS, depth)
    overrides = text.nested("per_layer_config", {})
    return tuple(
        _layer(text, cast(LayerKind, kind), overrides.nested(str(index), {})) for index, kind in enumerate(kinds)
    )


def _layer(text: Fields, kind: LayerKind, override: Fields) -> AttentionConfig:
    """The config of one layer. ``override``: transformers 5.15 and later save the two ``global_*`` fields again as
    overrides of single layers."""
    sliding = kind == "sliding_attention"
    value_is_key = text.flag("attention_k_eq_v", False) and not sliding
    head_dim, num_kv_heads = read_head_dim(text, "head_dim"), text.integer("num_key_value_heads", 1, MAX_HEADS)
    if not sliding:
        head_dim = read_head_dim(text, "global_head_dim", head_dim)
        if value_is_key:
            num_kv_heads = text.integer("num_global_key_value_heads", 1, MAX_HEADS, num_kv_heads)
    head_dim = read_head_dim(override, "head_dim", head_dim)
    num_kv_heads = override.integer("num_key_value_heads", 1, MAX_HEADS, num_kv_heads)
    rope = rope_fields(text, kind) if text.given("rope_scaling") else text.nested("rope_parameters").nested(kind)
    proportional = rope.text("rope_type", ("default", "proportional")) == "proportional"
    if proportional and rope.number("factor", 0, 1e6, 1.0) != 1.0:
        raise WeightsFailure(
            f"{rope.where} stretches positions (factor), which the engine lacks for Gemma 4.",
            "Take config.json as it was published.",
        )
    return AttentionConfig(
        kind=kind,
        num_heads=read_num_heads(text, num_kv_heads),
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        rope=RopeConfig(
            rope.number("rope_theta", 1, MAX_THETA),
            head_dim,
            rope.number("partial_rotary_factor", 0, 1, 1.0) if proportional else 1.0,
        ),
        scale=1.0,
        window=text.integer("sliding_window", 1, MAX_POSITIONS) if sliding else None,
        value_is_key=value_is_key,
    )


def _moe(text: Fields) -> MoeConfig:
    num_experts = text.integer("num_experts", 1, MAX_EXPERTS)
    return MoeConfig(
        num_experts,
        text.integer("top_k_experts", 1, num_experts),
        text.integer("moe_intermediate_size", 1, MAX_SIZE),
    )
