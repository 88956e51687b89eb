"""Reads the ``config.json`` of a plain pre-norm decoder. Field names are those of the published configs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ...errors import WeightsFailure
from ...files.json_fields import Fields
from ...layer_config import (
    MAX_EXPERTS,
    MAX_HEADS,
    MAX_LAYERS,
    MAX_POSITIONS,
    MAX_SIZE,
    MAX_VOCABULARY,
    SILU,
    AttentionConfig,
    MoeConfig,
    read_head_dim,
    read_num_heads,
    read_rope,
)
from ..family import Json, TargetConfig, read_stops

if TYPE_CHECKING:
    from .modules import PreNormTarget

OTHERWISE_COMPUTED = {
    "attention_bias": "whose attention adds biases",
    "mlp_bias": "whose MLP adds biases",
    "use_sliding_window": "with sliding windows",
}
"""Flags of configs that no published model of these families sets, with words for what they would change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreNormConfig(TargetConfig):
    """The config of a pre-norm decoder; with ``moe`` each layer has experts in place of its MLP. The layers' own
    configs say which have windows, biases and attention sinks."""

    head_norms: bool
    """Whether queries and keys are normed, head by head."""
    tied: bool
    """Whether the embedding is also the output head."""
    norm_style: Literal["gemma", "qwen"] = "qwen"
    """The order in which norms round, see ``kernels/reference/norm.py``."""

    def build(self) -> PreNormTarget:
        from .modules import PreNormTarget

        return PreNormTarget(self)


def read_pre_norm(
    config: Json, generation: Json | None, *, head_norms: bool, head_dim: int | None = None, experts: bool = False
) -> PreNormConfig:
    """Reads ``config.json``, and stop tokens from ``generation_config.json``. Raises ``WeightsFailure`` if unsupported.
    ``head_dim``: the default of configs that don't say; None divides the hidden size among the heads."""
    fields = Fields(config, "config.json")
    for name, what in OTHERWISE_COMPUTED.items():
        if fields.flag(name, False):
            raise WeightsFailure(
                f"This checkpoint is one {what} ({name}), which the engine lacks.", "Name a model without."
            )
    fields.text("hidden_act", SILU, "silu")
    depth = fields.integer("num_hidden_layers", 1, MAX_LAYERS)
    if "layer_types" in fields:
        fields.texts("layer_types", ("full_attention",), depth)
    vocab_size = fields.integer("vocab_size", 1, MAX_VOCABULARY)
    hidden_size = fields.integer("hidden_size", 1, MAX_SIZE)
    num_heads = fields.integer("num_attention_heads", 1, MAX_HEADS)
    moe = read_moe(fields, False) if experts else None
    layer = _attention(fields, head_dim or hidden_size // num_heads, num_heads)
    return PreNormConfig(
        hidden_size=hidden_size,
        intermediate_size=0 if moe is not None else fields.integer("intermediate_size", 1, MAX_SIZE),
        activation="silu",
        vocab_size=vocab_size,
        rms_norm_eps=fields.number("rms_norm_eps", 0, 1),
        max_context=fields.integer("max_position_embeddings", 1, MAX_POSITIONS),
        layers=(layer,) * depth,
        moe=moe,
        stop_token_ids=read_stops(fields, generation, vocab_size),
        head_norms=head_norms,
        tied=fields.flag("tie_word_embeddings", False),
    )


def _attention(fields: Fields, head_dim: int, num_heads: int) -> AttentionConfig:
    head_dim = read_head_dim(fields, "head_dim", head_dim)
    num_kv_heads = fields.integer("num_key_value_heads", 1, MAX_HEADS, num_heads)
    rope, factor = read_rope(fields, head_dim, theta=1e4)
    return AttentionConfig(
        kind="full_attention", num_heads=read_num_heads(fields, num_kv_heads), num_kv_heads=num_kv_heads,
        head_dim=head_dim, rope=rope, scale=head_dim**-0.5 * factor, window=None,
    )  # fmt: skip


def read_moe(fields: Fields, sums_to_one: bool) -> MoeConfig:
    """Reads the experts' config. Every layer has experts, and the weights of the chosen ones add up to one, as in all
    that are published. ``sums_to_one``: what a config means that doesn't say so."""
    sparse = fields.integer("decoder_sparse_step", 1, MAX_LAYERS, 1) == 1 and not fields.given("mlp_only_layers")
    if not sparse or not fields.flag("norm_topk_prob", sums_to_one):
        what = "whose experts' weights don't add up to one (norm_topk_prob)"
        if not sparse:
            what = "with layers without experts (decoder_sparse_step, mlp_only_layers)"
        raise WeightsFailure(f"This checkpoint is one {what}, which the engine lacks.", "Name a published one.")
    count = "num_experts" if "num_experts" in fields else "num_local_experts"
    num_experts = fields.integer(count, 1, MAX_EXPERTS)
    return MoeConfig(
        num_experts,
        fields.integer("num_experts_per_tok", 1, num_experts),
        fields.integer("moe_intermediate_size", 1, MAX_SIZE),
    )
