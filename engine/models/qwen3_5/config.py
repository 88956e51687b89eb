"""What the ``config.json`` of a Qwen3.5 says: layers that recur, every fourth of which attends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import WeightsFailure
from ...files.json_fields import Fields
from ...layer_config import (
    DELTA_TAPS,
    MAX_HEADS,
    MAX_LAYERS,
    MAX_POSITIONS,
    MAX_SIZE,
    MAX_THETA,
    MAX_VOCABULARY,
    SILU,
    AttentionConfig,
    DeltaConfig,
    RopeConfig,
    read_head_dim,
    read_num_heads,
    rope_fields,
)
from ..family import Json, TargetConfig, read_stops
from ..pre_norm.config import read_moe

if TYPE_CHECKING:
    from .modules import Qwen35Target

RECURS, ATTENDS = "linear_attention", "full_attention"
INTERVAL = 4
"""One layer in this many attends, where a config doesn't list the layers' kinds."""
TURNED = 0.25
"""The share of a head's channels that turn, where a config doesn't say."""
GATES = ("silu", "swish")
"""What configs call the gate's activation; both names mean SiLU."""
DIM_SIZES = tuple(1 << power for power in range(1, 9))
"""Channels of a head that kernels can take: a power of two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Qwen35Config(TargetConfig):
    """A decoder whose layers are gated delta nets, or attend and gate what they found."""

    tied: bool
    """Whether the embedding is the output head, too."""
    fused: bool = False
    """Whether files hold all projections of a gated delta net in one tensor, key head by key head, as Qwen3-Next's
    do."""

    def build(self) -> Qwen35Target:
        from .modules import Qwen35Target

        return Qwen35Target(self)


def read_qwen3_5(config: Json, generation: Json | None, *, experts: bool = False, fused: bool = False) -> Qwen35Config:
    """Reads ``config.json``, whose text part may lie in ``text_config``; stop tokens from ``generation_config.json``.
    ``WeightsFailure`` if unsupported. With ``experts`` each layer has some, and one beside them that all rows share."""
    whole = Fields(config, "config.json")
    fields = whole.nested("text_config") if "text_config" in whole else whole
    _refuse_others(fields)
    vocab_size = fields.integer("vocab_size", 1, MAX_VOCABULARY)
    attends, recurs = _attention(fields), _delta(fields)
    kinds = _kinds(fields)
    stops = read_stops(whole, generation, vocab_size)
    if generation is None or "eos_token_id" not in generation:
        stops += tuple(each for each in read_stops(fields, None, vocab_size) if each not in stops)
    return Qwen35Config(
        hidden_size=fields.integer("hidden_size", 1, MAX_SIZE),
        intermediate_size=fields.integer(f"{'shared_expert_' if experts else ''}intermediate_size", 1, MAX_SIZE),
        moe=read_moe(fields, True) if experts else None,
        activation="silu",
        vocab_size=vocab_size,
        rms_norm_eps=fields.number("rms_norm_eps", 0, 1),
        max_context=fields.integer("max_position_embeddings", 1, MAX_POSITIONS),
        layers=tuple(attends if kind == ATTENDS else recurs for kind in kinds),
        stop_token_ids=stops,
        fused=fused,
        tied=(fields if "tie_word_embeddings" in fields else whole).flag("tie_word_embeddings", False),
    )


def _refuse_others(fields: Fields) -> None:
    fields.text("hidden_act", SILU, "silu")
    what = None
    if fields.flag("attention_bias", False):
        what = "whose attention adds biases (attention_bias)"
    elif not fields.flag("attn_output_gate", True):
        what = "whose attention has no gate (attn_output_gate)"
    elif "output_gate_type" in fields and fields.text("output_gate_type", (*GATES, "sigmoid")) not in GATES:
        what = "whose gate is a sigmoid (output_gate_type)"
    elif (taps := fields.integer("linear_conv_kernel_dim", 1, MAX_SIZE, DELTA_TAPS)) != DELTA_TAPS:
        what = f"whose convolution sees {taps} rows (linear_conv_kernel_dim), not {DELTA_TAPS}"
    if what is not None:
        raise WeightsFailure(f"This checkpoint is one {what}, which the engine lacks.", "Name a published Qwen3.5.")


def _kinds(fields: Fields) -> tuple[str, ...]:
    depth = fields.integer("num_hidden_layers", 1, MAX_LAYERS)
    if "layer_types" in fields:
        return fields.texts("layer_types", (RECURS, ATTENDS), depth)
    interval = fields.integer("full_attention_interval", 1, MAX_LAYERS, INTERVAL)
    return tuple(RECURS if (layer + 1) % interval else ATTENDS for layer in range(depth))


def _delta(fields: Fields) -> DeltaConfig:
    keys = fields.integer("linear_num_key_heads", 1, MAX_HEADS)
    dims = [fields.integer(f"linear_{name}_head_dim", 1, MAX_HEADS) for name in ("key", "value")]
    if any(each not in DIM_SIZES for each in dims):
        raise WeightsFailure(
            f"This checkpoint's recurrent heads have {dims[0]} and {dims[1]} channels; the engine takes powers of two"
            f" up to {DIM_SIZES[-1]}.",
            "Name a published Qwen3.5.",
        )
    return DeltaConfig(keys, fields.integer("linear_num_value_heads", 1, MAX_HEADS, multiple_of=keys), dims[0], dims[1])


def _attention(fields: Fields) -> AttentionConfig:
    head_dim = read_head_dim(fields, "head_dim", 256)
    num_kv_heads = fields.integer("num_key_value_heads", 1, MAX_HEADS)
    return AttentionConfig(
        kind="full_attention", num_heads=read_num_heads(fields, num_kv_heads), num_kv_heads=num_kv_heads,
        head_dim=head_dim, rope=_rope(fields, head_dim), scale=head_dim**-0.5, window=None,
    )  # fmt: skip


def _rope(fields: Fields, head_dim: int) -> RopeConfig:
    """The rotary embedding of text. Configs tell of three axes of positions, for pictures; in text all three are the
    same."""
    rope = rope_fields(fields)
    kind = rope.text("rope_type" if "rope_type" in rope else "type", ("default", "mrope", "yarn", "linear"), "default")
    if kind in ("yarn", "linear"):
        raise WeightsFailure(
            f"This checkpoint stretches its positions (rope_type {kind!r}), which the engine lacks for its family.",
            "Take rope_parameters as they were published: the model takes 262144 tokens without.",
        )
    fraction = rope.number("partial_rotary_factor", 0, 1, TURNED)
    if int(head_dim * fraction) % 2 or int(head_dim * fraction) < 2:
        raise WeightsFailure(
            f"This checkpoint turns {fraction:g} of {head_dim} channels (partial_rotary_factor): no whole pairs.",
            "Take config.json as it was published.",
        )
    return RopeConfig(rope.number("rope_theta", 1, MAX_THETA), head_dim, fraction, partial=True)
