"""What a checkpoint's ``config.json`` says, as frozen dataclasses: every shape the engine uses comes from here.

Field names in comments are those of the published configs (``google/gemma-4-*``, ``z-lab/*-DFlash``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .errors import WeightsFailure

LayerKind = Literal["sliding_attention", "full_attention"]
Json = Mapping[str, Any]


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
        text: Json = config.get("text_config", config)
        _require_supported_gemma4(text)
        layers = tuple(_gemma4_layer(text, index) for index in range(text["num_hidden_layers"]))
        moe = None
        if text.get("enable_moe_block"):
            moe = MoeConfig(text["num_experts"], text["top_k_experts"], text["moe_intermediate_size"])
        return cls(
            hidden_size=text["hidden_size"],
            intermediate_size=text["intermediate_size"],
            vocab_size=text["vocab_size"],
            rms_norm_eps=text["rms_norm_eps"],
            logit_softcap=text.get("final_logit_softcapping"),
            max_context=text["max_position_embeddings"],
            layers=layers,
            moe=moe,
            stop_token_ids=_stop_token_ids(config, generation or {}),
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
    embedding_scale: float | None
    """``input_embedding_scale``; None leaves it to the target (Gemma: its own bf16-rounded sqrt(hidden_size))."""
    logit_softcap: float | None

    @classmethod
    def from_json(cls, config: Json) -> DrafterConfig:
        """Reads a drafter's ``config.json``; raises ``WeightsFailure`` for another architecture."""
        if config.get("architectures") != ["DFlashDraftModel"]:
            raise WeightsFailure(
                f"This drafter is a {config.get('architectures')}, not a DFlashDraftModel.",
                "Name a DFlash drafter with --draft, for example z-lab/gemma-4-26B-A4B-it-DFlash.",
            )
        merged = {**config, **config.get("dflash_config", {})}
        return cls(
            hidden_size=merged["hidden_size"],
            intermediate_size=merged["intermediate_size"],
            rms_norm_eps=merged["rms_norm_eps"],
            layers=tuple(_drafter_layer(merged, index) for index in range(merged["num_hidden_layers"])),
            block_size=merged["block_size"],
            mask_token_id=merged["mask_token_id"],
            target_layer_ids=tuple(merged["target_layer_ids"]),
            num_target_layers=merged.get("num_target_layers"),
            embedding_scale=merged.get("input_embedding_scale"),
            logit_softcap=merged.get("final_logit_softcapping"),
        )


def _require_supported_gemma4(text: Json) -> None:
    known = ("gemma4_text", "gemma4_unified_text")
    if text.get("model_type") not in known:
        raise WeightsFailure(
            f"This checkpoint is a {text.get('model_type')!r} model; the engine runs Gemma 4 ({' or '.join(known)}).",
            "Name a Gemma 4 checkpoint, or run dflash-chat without a model for the bundled pair.",
        )
    if text.get("hidden_size_per_layer_input") or text.get("num_kv_shared_layers"):
        raise WeightsFailure(
            "This Gemma 4 uses per-layer embeddings (E2B, E4B), which the engine lacks: no drafter exists for it.",
            "Use gemma-4-12B-it, gemma-4-26B-A4B-it or gemma-4-31B-it.",
        )


def _gemma4_layer(text: Json, index: int) -> AttentionConfig:
    kind: LayerKind = text["layer_types"][index]
    sliding = kind == "sliding_attention"
    value_is_key = bool(text.get("attention_k_eq_v")) and not sliding
    head_dim, num_kv_heads = text["head_dim"], text["num_key_value_heads"]
    if not sliding:
        head_dim = text.get("global_head_dim") or head_dim
        if value_is_key:
            num_kv_heads = text.get("num_global_key_value_heads") or num_kv_heads
    # transformers >= 5.15 re-saves the two global_* fields as overrides per layer.
    for key, override in (text.get("per_layer_config") or {}).items():
        if int(key) == index:
            head_dim = override.get("head_dim", head_dim)
            num_kv_heads = override.get("num_key_value_heads", num_kv_heads)
    rope = text["rope_parameters"][kind]
    fraction = rope.get("partial_rotary_factor", 1.0) if rope["rope_type"] == "proportional" else 1.0
    return AttentionConfig(
        kind=kind,
        num_heads=text["num_attention_heads"],
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        rope=RopeConfig(rope["rope_theta"], head_dim, fraction),
        scale=1.0,
        window=text["sliding_window"] if sliding else None,
        value_is_key=value_is_key,
    )


def _drafter_layer(merged: Json, index: int) -> AttentionConfig:
    kinds = merged.get("layer_types") or ["full_attention"] * merged["num_hidden_layers"]
    kind: LayerKind = kinds[index]
    sliding = kind == "sliding_attention"
    head_dim = merged["head_dim"]
    theta = merged.get("rope_theta") or merged["rope_parameters"]["rope_theta"]
    # Unless the config says otherwise, sliding layers are causal inside the block and full layers see all of it.
    causal = merged.get("is_causal", merged.get("causal", sliding))
    return AttentionConfig(
        kind=kind,
        num_heads=merged["num_attention_heads"],
        num_kv_heads=merged["num_key_value_heads"],
        head_dim=head_dim,
        rope=RopeConfig(theta, head_dim),
        scale=head_dim**-0.5,
        window=merged["sliding_window"] if sliding else None,
        causal=causal,
    )


def _stop_token_ids(config: Json, generation: Json) -> tuple[int, ...]:
    ids = generation.get("eos_token_id", config.get("eos_token_id"))
    if ids is None:
        return ()
    return tuple(ids) if isinstance(ids, list | tuple) else (ids,)
