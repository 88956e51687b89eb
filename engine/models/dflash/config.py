"""Reads a DFlash drafter's ``config.json``. Field names in comments are those of ``z-lab/*-DFlash``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, NoReturn, Self, cast

from ...commands import NO_DRAFTER, Method
from ...errors import Option, WeightsFailure
from ...files.json_fields import DOWNLOAD_AGAIN, Fields
from ...layer_config import (
    KINDS,
    MAX_HEADS,
    MAX_LAYERS,
    MAX_POSITIONS,
    MAX_SIZE,
    MAX_VOCABULARY,
    SILU,
    Activation,
    AttentionConfig,
    LayerKind,
    optional_integer,
    optional_number,
    read_head_dim,
    read_num_heads,
    read_rope,
)
from ..family import DrafterConfig, DrafterKind, Json, TargetConfig
from ..unread_fields import refuse_unread

if TYPE_CHECKING:
    from ...files.headers import Headers
    from ...kv_cache.layer_state import StatefulLayer
    from .modules import DFlashDrafter

CONV_TAPS, CANDIDATES = 2, 16
"""What all published DFlash 2 drafters have: rows that a convolution sees, and tokens among which is chosen."""
CAUSAL = ("is_causal", "causal", "dflash_query_causal", "draft_causal")
"""What configs call whether a row of the block sees only the rows before it."""
OWN_DRAFTER = ("Name the target's own drafter with ", Option("drafter"))


@dataclass(frozen=True, slots=True)
class SecondConfig:
    """What DFlash 2 has beside what DFlash has."""

    groups: int
    """How many groups of channels a convolution weighs alike."""
    rank: int
    """The rank of the matrices that say how tokens follow one another."""
    successors: int | None = None
    """How many tokens follow one in its file, which has those that are drafted or all; None for all."""


@dataclass(frozen=True, slots=True)
class MarkovConfig:
    """What DSpark has beside what DFlash has: a head that corrects each guess by the one before it."""

    rank: int
    gated: bool = False
    """Whether the block's row weighs what the guess before says."""
    confidence: Literal["none", "of rows", "of rows and guesses"] = "none"
    """What says how likely each guess is accepted: nothing, the block's row, or that and the guess before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DFlashConfig(DrafterConfig):
    """A DFlash drafter (z-lab's layout). ``dflash_config.X`` wins over a top-level ``X``."""

    kind: ClassVar[DrafterKind] = "dflash"
    norm_style: ClassVar[Literal["gemma", "qwen"]] = "qwen"
    activation: ClassVar[Activation] = "silu"

    hidden_size: int
    intermediate_size: int
    rms_norm_eps: float
    mask_token_id: int
    num_target_layers: int | None
    embedding_scale: float | None
    """``input_embedding_scale``; None leaves it to the target (Gemma: its own bf16-rounded sqrt(hidden_size))."""
    logit_softcap: float | None
    second: SecondConfig | None = None
    """What DFlash 2 has besides: convolutions around its layers' branches, and drafts chosen one behind the other. None
    for DFlash."""
    markov: MarkovConfig | None = None
    """What DSpark has besides; None for others."""
    first_slot: Literal[0, 1] = 1
    """The first row of a block that drafts. With 0 the anchor's row drafts the token behind it, and a block has a row
    less than ``block_size``, which counts the anchor and the drafts wherever they stand."""

    @classmethod
    def second_from_json(cls, config: Json) -> DFlashConfig:
        whole = Fields(config, "the drafter's config.json")
        merged = whole.merged(whole.nested("dflash_config", {}))
        merged.integer("vocab_size", 1, MAX_VOCABULARY)  # its selector has a row for each token
        return replace(cls.from_json(config), second=_second(merged))

    @classmethod
    def from_json(cls, config: Json) -> Self:
        """Reads a drafter's ``config.json``; raises ``WeightsFailure`` for a damaged one."""
        whole = Fields(config, "the drafter's config.json")
        merged = whole.merged(whole.nested("dflash_config", {}))
        refuse_unread(merged)
        hidden = merged.integer("hidden_size", 1, MAX_SIZE)
        if merged.number("output_multiplier", 0, 1e6, 1.0) != 1.0:
            refuse("that multiplies its logits (output_multiplier)")
        if merged.integer("target_hidden_size", 1, MAX_SIZE, hidden) != hidden:
            refuse(f"of width {hidden} for a target of another width (target_hidden_size)")
        return cls(
            hidden_size=hidden,
            intermediate_size=merged.integer("intermediate_size", 1, MAX_SIZE),
            rms_norm_eps=merged.number("rms_norm_eps", 0, 1), layers=cls.read_layers(merged),
            block_size=merged.integer("block_size", 2, MAX_SIZE),
            mask_token_id=merged.integer("mask_token_id", 0, MAX_VOCABULARY),
            target_layer_ids=merged.integers("target_layer_ids", 0, MAX_LAYERS),
            num_target_layers=optional_integer(merged, "num_target_layers", MAX_LAYERS),
            vocab_size=optional_integer(merged, "vocab_size", MAX_VOCABULARY),
            embedding_scale=optional_number(merged, "input_embedding_scale"),
            logit_softcap=optional_number(merged, "final_logit_softcapping"),
        )  # fmt: skip

    @property
    def method(self) -> Method:
        return "dflash2" if self.second is not None else "dspark" if self.markov is not None else "dflash"

    @property
    def first_drafts(self) -> bool:
        return self.first_slot == 0

    @property
    def sizes(self) -> tuple[int, int]:
        return self.hidden_size, self.intermediate_size

    @property
    def states(self) -> tuple[StatefulLayer, ...]:
        return self.layers

    def with_files(self, headers: Headers) -> DFlashConfig:
        book = headers.get("candidate_selector.successor_codebook")
        if self.second is None or book is None or book.shape[:1] != (self.tables.vocabulary,):
            return self
        return replace(self, second=replace(self.second, successors=self.tables.vocabulary))

    def check(self, target: TargetConfig) -> None:
        depth = len(target.layers)
        trained_on = self.num_target_layers
        if self.hidden_size != target.hidden_size or (trained_on is not None and trained_on != depth):
            raise WeightsFailure(
                f"This drafter was made for a target of {trained_on or '?'} layers of width {self.hidden_size};"
                f" this one has {depth} of width {target.hidden_size}.",
                (*OWN_DRAFTER, ", or go without one: ", Option("drafter", NO_DRAFTER), "."),
            )
        if any(index >= depth for index in self.target_layer_ids):
            raise WeightsFailure(
                f"This drafter reads target layers {list(self.target_layer_ids)}, the target has only {depth}.",
                (*OWN_DRAFTER, "."),
            )
        if len(set(self.target_layer_ids)) < len(self.target_layer_ids):
            raise WeightsFailure(
                f"This drafter reads target layers {list(self.target_layer_ids)}, one of them twice.",
                (*OWN_DRAFTER, "."),
            )
        if self.vocab_size not in (None, target.vocab_size) or self.mask_token_id >= target.vocab_size:
            raise WeightsFailure(
                f"This drafter was made for a vocabulary of {self.vocab_size or '?'} tokens with {self.mask_token_id}"
                f" for its mask; this target's has {target.vocab_size}.",
                (*OWN_DRAFTER, "."),
            )

    @staticmethod
    def read_layers(merged: Fields) -> tuple[AttentionConfig, ...]:
        """The attention of each layer, as a config describes it."""
        return read_layers(merged)

    def build(self) -> DFlashDrafter:
        from .modules import DFlashDrafter

        return DFlashDrafter(self)


def refuse(what: str) -> NoReturn:
    """Raises ``WeightsFailure`` for a drafter of a kind that is not computed, said as one ``what``."""
    raise WeightsFailure(f"This drafter is one {what}, which the engine lacks.", (*OWN_DRAFTER, "."))


def _second(merged: Fields) -> SecondConfig:
    what = None
    if (taps := merged.integer("conv_kernel_size", 1, MAX_SIZE)) != CONV_TAPS:
        what = f"whose convolutions see {taps} rows (conv_kernel_size), not {CONV_TAPS}"
    elif (count := merged.integer("selector_top_k", 1, MAX_VOCABULARY)) != CANDIDATES:
        what = f"that chooses among {count} tokens (selector_top_k), not {CANDIDATES}"
    elif merged.flag("sample_from_anchor", False):
        what = "whose first row drafts, too (sample_from_anchor)"
    rank = merged.integer("selector_rank", 1, MAX_SIZE)
    if what is None and rank & (rank - 1):
        what = f"whose selector has {rank} channels (selector_rank), which is no power of two"
    if what is not None:
        refuse(what)
    size, hidden = merged.integer("conv_group_size", 1, MAX_SIZE), merged.integer("hidden_size", 1, MAX_SIZE)
    if hidden % size:
        raise WeightsFailure(
            f"This drafter's {hidden} channels are no whole groups of {size} (conv_group_size).", DOWNLOAD_AGAIN
        )
    return SecondConfig(hidden // size, rank)


def read_layers(merged: Fields) -> tuple[AttentionConfig, ...]:
    """The attention of each layer, as Qwen3's config describes it; raises ``WeightsFailure`` for another activation."""
    for name in ("hidden_act", "hidden_activation"):
        merged.text(name, SILU, "silu")
    depth = merged.integer("num_hidden_layers", 1, MAX_LAYERS)
    kinds = merged.texts("layer_types", KINDS, depth) if "layer_types" in merged else ("full_attention",) * depth
    return tuple(_layer(merged, cast(LayerKind, kind)) for kind in kinds)


def _layer(merged: Fields, kind: LayerKind) -> AttentionConfig:
    # As Qwen3Config of transformers has it: without use_sliding_window no layer has a window, whatever its kind says.
    sliding = merged.flag("use_sliding_window", True) and kind == "sliding_attention"
    kind = "sliding_attention" if sliding else "full_attention"
    head_dim, num_kv_heads = read_head_dim(merged, "head_dim"), merged.integer("num_key_value_heads", 1, MAX_HEADS)
    # Unless the config says otherwise, sliding layers are causal inside the block and full layers see all of it.
    causal_flags = {name: merged.flag(name, sliding) for name in CAUSAL if name in merged}
    if len(set(causal_flags.values())) > 1:
        refuse(f"of which not all fields say the same of whether rows see later ones ({', '.join(causal_flags)})")
    causal = next(iter(causal_flags.values()), sliding)
    rope, factor = read_rope(merged, head_dim, kind=kind)
    return AttentionConfig(
        kind=kind, num_heads=read_num_heads(merged, num_kv_heads), num_kv_heads=num_kv_heads, head_dim=head_dim,
        rope=rope, scale=head_dim**-0.5 * factor, biases=merged.flag("attention_bias", False),
        window=merged.integer("sliding_window", 1, MAX_POSITIONS) if sliding else None, causal=causal,
    )  # fmt: skip
