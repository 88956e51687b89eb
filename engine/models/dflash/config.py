"""What a DFlash drafter's ``config.json`` says. Field names in comments are those of ``z-lab/*-DFlash``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ...files.json_fields import Fields
from ...layer_config import (
    KINDS,
    MAX_HEADS,
    MAX_LAYERS,
    MAX_POSITIONS,
    MAX_SIZE,
    MAX_VOCABULARY,
    AttentionConfig,
    LayerKind,
    optional_integer,
    optional_number,
    read_head_dim,
    read_num_heads,
    read_rope,
)
from ..family import Json

if TYPE_CHECKING:
    from .modules import DFlashDrafter


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
        """Reads a drafter's ``config.json``; raises ``WeightsFailure`` for a damaged one."""
        whole = Fields(config, "the drafter's config.json")
        merged = whole.merged(whole.nested("dflash_config", {}))
        merged.text("hidden_act", ("silu",), "silu")
        return cls(
            hidden_size=merged.integer("hidden_size", 1, MAX_SIZE),
            intermediate_size=merged.integer("intermediate_size", 1, MAX_SIZE),
            rms_norm_eps=merged.number("rms_norm_eps", 0, 1), layers=_layers(merged),
            block_size=merged.integer("block_size", 2, MAX_SIZE),
            mask_token_id=merged.integer("mask_token_id", 0, MAX_VOCABULARY),
            target_layer_ids=merged.integers("target_layer_ids", 0, MAX_LAYERS),
            num_target_layers=optional_integer(merged, "num_target_layers", MAX_LAYERS),
            vocab_size=optional_integer(merged, "vocab_size", MAX_VOCABULARY),
            embedding_scale=optional_number(merged, "input_embedding_scale"),
            logit_softcap=optional_number(merged, "final_logit_softcapping"),
        )  # fmt: skip

    def build(self) -> DFlashDrafter:
        """A drafter of this shape whose weights are not set yet; under ``torch.device("meta")`` it takes no memory."""
        from .modules import DFlashDrafter

        return DFlashDrafter(self)


def _layers(merged: Fields) -> tuple[AttentionConfig, ...]:
    depth = merged.integer("num_hidden_layers", 1, MAX_LAYERS)
    kinds = merged.texts("layer_types", KINDS, depth) if "layer_types" in merged else ("full_attention",) * depth
    return tuple(_layer(merged, cast(LayerKind, kind)) for kind in kinds)


def _layer(merged: Fields, kind: LayerKind) -> AttentionConfig:
    sliding = kind == "sliding_attention"
    head_dim, num_kv_heads = read_head_dim(merged, "head_dim"), merged.integer("num_key_value_heads", 1, MAX_HEADS)
    # Unless the config says otherwise, sliding layers are causal inside the block and full layers see all of it.
    causal = merged.flag("is_causal", merged.flag("causal", sliding))
    rope, factor = read_rope(merged, head_dim)
    return AttentionConfig(
        kind=kind, num_heads=read_num_heads(merged, num_kv_heads), num_kv_heads=num_kv_heads, head_dim=head_dim,
        rope=rope, scale=head_dim**-0.5 * factor,
        window=merged.integer("sliding_window", 1, MAX_POSITIONS) if sliding else None, causal=causal,
    )  # fmt: skip
