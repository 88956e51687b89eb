"""What a checkpoint's ``config.json`` says, as frozen dataclasses: every shape the engine uses comes from here.

Field names in comments are those of the published configs (``google/gemma-4-*``, ``z-lab/*-DFlash``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from .errors import Load, Option, WeightsFailure
from .files.json_fields import Fields

LayerKind = Literal["sliding_attention", "full_attention"]
Json = Mapping[str, Any]

KINDS = ("sliding_attention", "full_attention")
MAX_LAYERS, MAX_HEADS, MAX_EXPERTS = 512, 4096, 4096
MAX_SIZE, MAX_VOCABULARY, MAX_POSITIONS = 1 << 20, 1 << 22, 1 << 24
"""Far above what exists, and low enough that no product of them overflows."""
MAX_THETA = 1e12


@dataclass(frozen=True, slots=True)
class RopeConfig:
    """Rotary embedding of one layer. ``rotated_fraction`` < 1 is Gemma 4's *proportional* kind: only that fraction of
    the frequency pairs turns, the others pass through."""

    theta: float
    head_dim: int
    rotated_fraction: float = 1.0


@dataclass(frozen=True, slots=True)
class AttentionConfig:
    """One attention layer, of a target or a drafter."""

    kind: LayerKind
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rope: RopeConfig
    scale: float
    window: int | None
    """A query at p sees keys in (p - window, p]; None sees everything before it."""
    value_is_key: bool = False
    """``attention_k_eq_v``: values are the raw output of ``k_proj``, and there is no ``v_proj``."""
    causal: bool = True
    """Drafter only: whether a row of the draft block sees just the rows before it, or the whole block."""


@dataclass(frozen=True, slots=True)
class MoeConfig:
    num_experts: int
    top_k: int
    intermediate_size: int


@dataclass(frozen=True, slots=True)
class TargetConfig:
    """A Gemma 4 text model (``text_config`` of the checkpoint's config.json)."""

    hidden_size: int
    intermediate_size: int
    vocab_size: int
    rms_norm_eps: float
    logit_softcap: float | None
    max_context: int
    layers: tuple[AttentionConfig, ...]
    moe: MoeConfig | None
    stop_token_ids: tuple[int, ...]

    @classmethod
    def from_json(cls, config: Json, generation: Json | None = None) -> TargetConfig:
        """Reads ``config.json`` and, for the stop tokens, ``generation_config.json``.

        Raises ``WeightsFailure`` for an architecture this engine doesn't know.
        """
        whole = Fields(config, "config.json")
        text = whole.nested("text_config") if "text_config" in whole else whole
        _require_supported_gemma4(config.get("text_config", config))
        _require_what_the_engine_computes(whole, text)
        vocab_size = text.integer("vocab_size", 1, MAX_VOCABULARY)
        stops = Fields(generation or {}, "generation_config.json")
        if "eos_token_id" not in stops:
            stops = whole
        return cls(
            hidden_size=text.integer("hidden_size", 1, MAX_SIZE),
            intermediate_size=text.integer("intermediate_size", 1, MAX_SIZE),
            vocab_size=vocab_size,
            rms_norm_eps=text.number("rms_norm_eps", 0, 1),
            logit_softcap=_optional_number(text, "final_logit_softcapping"),
            max_context=text.integer("max_position_embeddings", 1, MAX_POSITIONS),
            layers=_gemma4_layers(text),
            moe=_moe(text) if text.flag("enable_moe_block", False) else None,
            stop_token_ids=stops.integers("eos_token_id", 0, vocab_size - 1) if "eos_token_id" in stops else (),
        )


@dataclass(frozen=True, slots=True)
class DrafterConfig:
    """A DFlash drafter (z-lab's layout). ``dflash_config.X`` wins over a top-level ``X``."""

    hidden_size: int
    intermediate_size: int
    rms_norm_eps: float
    layers: tuple[AttentionConfig, ...]
    block_size: int
    """Tokens per block, the anchor included: 16 drafts 15."""
    mask_token_id: int
    target_layer_ids: tuple[int, ...]
    """The drafter reads the *outputs* of these target layers."""
    num_target_layers: int | None
    vocab_size: int | None
    """The target's, whose embedding and head it uses."""
    embedding_scale: float | None
    """``input_embedding_scale``; None leaves it to the target (Gemma: its own bf16-rounded sqrt(hidden_size))."""
    logit_softcap: float | None

    @classmethod
    def from_json(cls, config: Json) -> DrafterConfig:
        """Reads a drafter's ``config.json``; raises ``WeightsFailure`` for another architecture."""
        if config.get("architectures") != ["DFlashDraftModel"]:
            raise WeightsFailure(
                f"This drafter is a {config.get('architectures')}, not a DFlashDraftModel.",
                ("Name a DFlash drafter with ", Option("drafter"), ", for example z-lab/gemma-4-26B-A4B-it-DFlash."),
            )
        whole = Fields(config, "the drafter's config.json")
        merged = whole.merged(whole.nested("dflash_config", {}))
        merged.text("hidden_act", ("silu",), "silu")
        return cls(
            hidden_size=merged.integer("hidden_size", 1, MAX_SIZE),
            intermediate_size=merged.integer("intermediate_size", 1, MAX_SIZE),
            rms_norm_eps=merged.number("rms_norm_eps", 0, 1),
            layers=_drafter_layers(merged),
            block_size=merged.integer("block_size", 2, MAX_SIZE),
            mask_token_id=merged.integer("mask_token_id", 0, MAX_VOCABULARY),
            target_layer_ids=merged.integers("target_layer_ids", 0, MAX_LAYERS),
            num_target_layers=_optional_integer(merged, "num_target_layers", MAX_LAYERS),
            vocab_size=_optional_integer(merged, "vocab_size", MAX_VOCABULARY),
            embedding_scale=_optional_number(merged, "input_embedding_scale"),
            logit_softcap=_optional_number(merged, "final_logit_softcapping"),
        )


def _optional_integer(fields: Fields, name: str, high: int) -> int | None:
    return fields.integer(name, 1, high) if name in fields else None


def _optional_number(fields: Fields, name: str) -> float | None:
    return fields.number(name, 0, 1e6) if name in fields else None


def _require_supported_gemma4(text: object) -> None:
    known = ("gemma4_text", "gemma4_unified_text")
    model_type = text.get("model_type") if isinstance(text, Mapping) else text
    if model_type not in known:
        raise WeightsFailure(
            f"This checkpoint is a {model_type!r} model; the engine runs Gemma 4 ({' or '.join(known)}).",
            ("Name a Gemma 4 checkpoint, or run ", Load(), " without a model for the bundled pair."),
        )
    assert isinstance(text, Mapping)
    if text.get("hidden_size_per_layer_input") or text.get("num_kv_shared_layers"):
        raise WeightsFailure(
            "This Gemma 4 uses per-layer embeddings (E2B, E4B), which the engine lacks: no drafter exists for it.",
            "Use gemma-4-12B-it, gemma-4-26B-A4B-it or gemma-4-31B-it.",
        )


def _require_what_the_engine_computes(whole: Fields, text: Fields) -> None:
    """Refuses variants that no published Gemma 4 has: they would load, and compute something else."""
    text.text("hidden_activation", ("gelu_pytorch_tanh",), "gelu_pytorch_tanh")
    for fields in (whole, text):
        if not fields.flag("tie_word_embeddings", True):
            raise WeightsFailure("This checkpoint has an output head of its own.", "Name an original Gemma 4.")


def _gemma4_layers(text: Fields) -> tuple[AttentionConfig, ...]:
    depth = text.integer("num_hidden_layers", 1, MAX_LAYERS)
    kinds = text.texts("layer_types", KINDS, depth)
    overrides = text.nested("per_layer_config", {})
    return tuple(
        _gemma4_layer(text, cast(LayerKind, kind), overrides.nested(str(index), {})) for index, kind in enumerate(kinds)
    )


def _gemma4_layer(text: Fields, kind: LayerKind, override: Fields) -> AttentionConfig:
    """``override``: transformers 5.15 and later save the two ``global_*`` fields again as overrides per layer."""
    sliding = kind == "sliding_attention"
    value_is_key = text.flag("attention_k_eq_v", False) and not sliding
    head_dim, num_kv_heads = _head_dim(text, "head_dim"), text.integer("num_key_value_heads", 1, MAX_HEADS)
    if not sliding:
        head_dim = _head_dim(text, "global_head_dim", head_dim)
        if value_is_key:
            num_kv_heads = text.integer("num_global_key_value_heads", 1, MAX_HEADS, num_kv_heads)
    head_dim = _head_dim(override, "head_dim", head_dim)
    num_kv_heads = override.integer("num_key_value_heads", 1, MAX_HEADS, num_kv_heads)
    rope = text.nested("rope_parameters").nested(kind)
    proportional = rope.text("rope_type", ("default", "proportional")) == "proportional"
    return AttentionConfig(
        kind=kind,
        num_heads=_num_heads(text, num_kv_heads),
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


def _drafter_layers(merged: Fields) -> tuple[AttentionConfig, ...]:
    depth = merged.integer("num_hidden_layers", 1, MAX_LAYERS)
    kinds = merged.texts("layer_types", KINDS, depth) if "layer_types" in merged else ("full_attention",) * depth
    return tuple(_drafter_layer(merged, cast(LayerKind, kind)) for kind in kinds)


def _drafter_layer(merged: Fields, kind: LayerKind) -> AttentionConfig:
    sliding = kind == "sliding_attention"
    head_dim, num_kv_heads = _head_dim(merged, "head_dim"), merged.integer("num_key_value_heads", 1, MAX_HEADS)
    # Unless the config says otherwise, sliding layers are causal inside the block and full layers see all of it.
    causal = merged.flag("is_causal", merged.flag("causal", sliding))
    return AttentionConfig(
        kind=kind,
        num_heads=_num_heads(merged, num_kv_heads),
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        rope=RopeConfig(_drafter_rope(merged).number("rope_theta", 1, MAX_THETA), head_dim),
        scale=head_dim**-0.5,
        window=merged.integer("sliding_window", 1, MAX_POSITIONS) if sliding else None,
        causal=causal,
    )


def _drafter_rope(merged: Fields) -> Fields:
    """Where the frequencies stand: at the top level, or as newer transformers save them. Only plain ones are known."""
    rope = merged if "rope_theta" in merged else merged.nested("rope_parameters")
    for scaling in (rope, merged.nested("rope_scaling", {})):
        scaling.text("rope_type", ("default",), "default")
    return rope


def _head_dim(fields: Fields, name: str, default: int | None = None) -> int:
    """Rotary embeddings turn the halves of a head against each other, so it must have two."""
    return fields.integer(name, 2, MAX_HEADS, default, multiple_of=2)


def _num_heads(fields: Fields, num_kv_heads: int) -> int:
    """Every key serves the same number of queries."""
    return fields.integer("num_attention_heads", 1, MAX_HEADS, multiple_of=num_kv_heads)
