"""What the ``config.json`` of a gpt-oss says. Field names are those of ``openai/gpt-oss-20b``."""

from __future__ import annotations

from typing import cast

from ...errors import WeightsFailure
from ...files.json_fields import Fields
from ...layer_config import (
    CLAMP,
    KINDS,
    MAX_EXPERTS,
    MAX_HEADS,
    MAX_LAYERS,
    MAX_POSITIONS,
    MAX_SIZE,
    MAX_VOCABULARY,
    SHARPNESS,
    SILU,
    AttentionConfig,
    LayerKind,
    MoeConfig,
    read_head_dim,
    read_num_heads,
    read_rope,
)
from ..family import Json, read_stops
from ..pre_norm.config import PreNormConfig

PUBLISHED_VOCABULARY = 201_088
RETURN, CALL = 200_002, 200_012
"""``<|return|>`` ends an answer, ``<|call|>`` a call of a tool: the latter stands in generation_config.json alone."""


def read_gpt_oss(config: Json, generation: Json | None) -> PreNormConfig:
    """Reads ``config.json``, stop tokens from ``generation_config.json``; ``WeightsFailure`` if unsupported. Layers
    with and without a window take turns, and all have experts."""
    fields = Fields(config, "config.json")
    fields.text("hidden_act", SILU, "silu")
    if not fields.given("rope_scaling"):
        fields.nested("rope_parameters")  # transformers has a scaling of its own where neither is there
    if not fields.flag("attention_bias", True):
        _refuse("whose attention has no biases (attention_bias)")
    for name, ours in (("swiglu_limit", CLAMP), ("swiglu_alpha", SHARPNESS)):
        if fields.number(name, 0, 1e6, ours) != ours:
            _refuse(f"whose experts are clamped otherwise ({name} is not {ours:g})")
    vocab_size = fields.integer("vocab_size", 1, MAX_VOCABULARY)
    num_layers = fields.integer("num_hidden_layers", 1, MAX_LAYERS)
    kinds = ("sliding_attention", "full_attention") * num_layers
    if "layer_types" in fields:
        kinds = fields.texts("layer_types", KINDS, num_layers)
    stops = read_stops(fields, generation, vocab_size)
    if vocab_size == PUBLISHED_VOCABULARY:
        stops = tuple(dict.fromkeys((*stops, RETURN, CALL)))
    layers = tuple(_attention(fields, cast(LayerKind, kind)) for kind in kinds[:num_layers])
    if len({layer.rope for layer in layers}) > 1:
        _refuse("whose two kinds of layers turn differently (rope_parameters)")
    return PreNormConfig(
        hidden_size=fields.integer("hidden_size", 1, MAX_SIZE),
        intermediate_size=0,
        activation="clamped_silu",
        vocab_size=vocab_size,
        rms_norm_eps=fields.number("rms_norm_eps", 0, 1),
        max_context=fields.integer("max_position_embeddings", 1, MAX_POSITIONS),
        layers=layers,
        moe=_moe(fields),
        stop_token_ids=stops,
        head_norms=False,
        tied=fields.flag("tie_word_embeddings", False),
        norm_style="gemma",
    )


def _attention(fields: Fields, kind: LayerKind) -> AttentionConfig:
    head_dim = read_head_dim(fields, "head_dim", 64)
    num_kv_heads = fields.integer("num_key_value_heads", 1, MAX_HEADS)
    rope, factor = read_rope(fields, head_dim, theta=150_000.0, kind=kind)
    return AttentionConfig(
        kind=kind, num_heads=read_num_heads(fields, num_kv_heads), num_kv_heads=num_kv_heads, head_dim=head_dim,
        rope=rope, scale=head_dim**-0.5 * factor, biases=True, sinks=True,
        window=fields.integer("sliding_window", 1, MAX_POSITIONS) if kind == "sliding_attention" else None,
    )  # fmt: skip


def _moe(fields: Fields) -> MoeConfig:
    count = "num_local_experts" if "num_local_experts" in fields else "num_experts"
    num_experts = fields.integer(count, 1, MAX_EXPERTS)
    chosen = "num_experts_per_tok" if "num_experts_per_tok" in fields else "experts_per_token"
    return MoeConfig(
        num_experts,
        fields.integer(chosen, 1, num_experts),
        fields.integer("intermediate_size", 1, MAX_SIZE),
        biases=True,
    )


def _refuse(what: str) -> None:
    raise WeightsFailure(f"This checkpoint is a gpt-oss {what}, which the engine lacks.", "Name a published gpt-oss.")
