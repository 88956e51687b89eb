"""The shapes that models, their caches and their kernels are built from, as frozen dataclasses.

They come from a checkpoint's ``config.json``, which each family reads in its own folder under ``models``. Field names
in comments are those of the published configs.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Literal, cast

from .errors import WeightsFailure
from .files.json_fields import Fields

if TYPE_CHECKING:
    import torch

    from .kv_cache.delta_state import DeltaState
    from .kv_cache.layer_cache import LayerCache

LayerKind = Literal["sliding_attention", "full_attention"]
Activation = Literal["gelu_tanh", "silu", "clamped_silu"]
"""The function between gate and up. ``clamped_silu`` is gpt-oss's: gate and up values alternate and are clamped, see
``kernels/reference/moe.py``."""
SILU = ("silu", "swish")
GELU_TANH = ("gelu_pytorch_tanh", "gelu_python_tanh")
"""The names by which configs call these two: ``transformers`` knows each by any."""
RopeKind = Literal["linear", "llama3", "yarn"]

CLAMP, SHARPNESS = 7.0, 1.702
"""The two constants of ``clamped_silu``: the limit of gates and ups, and the factor inside its sigmoid."""
DELTA_TAPS = 4
"""Rows that the convolution of a gated delta net sees, its own among them."""
KINDS = ("sliding_attention", "full_attention")
MAX_LAYERS, MAX_HEADS, MAX_EXPERTS = 512, 4096, 4096
MAX_SIZE, MAX_VOCABULARY, MAX_POSITIONS = 1 << 20, 1 << 22, 1 << 24
"""Limits of what a config may say: far above what exists, and low enough that no product of them overflows."""
MAX_THETA = 1e12
ROPE_KINDS = ("default", "linear", "llama3", "yarn")


@dataclass(frozen=True, slots=True)
class RopeScaling:
    """How rotary pairs turn more slowly than theta says, for texts longer than those a model was first trained on."""

    kind: RopeKind
    factor: float
    """How much more slowly the slow pairs turn; with ``linear`` all of them."""
    trained_context: int = 0
    """``original_max_position_embeddings``: the number of positions in which a pair's turns are counted."""
    slow: float = 1.0
    """Pairs with fewer turns than this are slow: ``low_freq_factor``, ``beta_slow``."""
    fast: float = 1.0
    """Pairs with more turns than this keep their speed: ``high_freq_factor``, ``beta_fast``. Between the two the factor
    is a ramp."""
    whole_pairs: bool = True
    """``truncate`` of ``yarn``: whether its ramp begins and ends at a pair."""


@dataclass(frozen=True, slots=True)
class RopeConfig:
    """One layer's rotary embedding; with ``rotated_fraction`` < 1 only that part of the pairs turns
    (*proportional*)."""

    theta: float
    head_dim: int
    rotated_fraction: float = 1.0
    scaling: RopeScaling | None = None
    partial: bool = False
    """Whether those pairs turn as in a head that has no others (*partial* rotary, Qwen3.5)."""


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
    biases: bool = False
    """``attention_bias``: whether biases are added to what the projections yield."""
    sinks: bool = False
    """Whether each head has a score of its own in the softmax, beside those of the keys, whose share attends to
    nothing."""
    causal: bool = True
    """Drafter only: whether a row of the draft block sees only the rows before it, or the whole block."""

    @property
    def qkv_columns(self) -> int:
        """Columns of queries, keys and values side by side, as the projections yield them."""
        return (self.num_heads + (1 if self.value_is_key else 2) * self.num_kv_heads) * self.head_dim

    def new_state(self, max_context: int, slack: int, dtype: torch.dtype, device: torch.device) -> LayerCache:
        """The layer's empty keys and values; see ``kv_cache.layer_state.StatefulLayer``."""
        from .kv_cache.layer_cache import FullCache, RingCache  # needs torch, which reading configs doesn't

        if self.window is None:
            return FullCache(self.num_kv_heads, max_context, self.head_dim, dtype, device)
        capacity = min(max_context, self.window - 1 + slack)
        return RingCache(self.num_kv_heads, capacity, self.head_dim, dtype, device, self.window)


@dataclass(frozen=True, slots=True)
class DeltaConfig:
    """The shape of one gated delta net of a target; dimensions are per head."""

    num_key_heads: int
    num_value_heads: int
    key_dim: int
    value_dim: int

    @property
    def channels(self) -> int:
        """Channels of its convolution: all queries, keys and values side by side."""
        return 2 * self.num_key_heads * self.key_dim + self.values

    @property
    def values(self) -> int:
        """How many channels the values of all heads have together."""
        return self.num_value_heads * self.value_dim

    def new_state(self, max_context: int, slack: int, dtype: torch.dtype, device: torch.device) -> DeltaState:
        """The layer's empty recurrent state; see ``kv_cache.layer_state.StatefulLayer``."""
        from .kv_cache.delta_state import new_delta_state

        return new_delta_state(self, dtype, device)


@dataclass(frozen=True, slots=True)
class MoeConfig:
    """The shape of a layer's mixture of experts."""

    num_experts: int
    top_k: int
    intermediate_size: int
    biases: bool = False
    """Whether biases are added to the router's scores and to what the experts' projections yield."""


def read_head_dim(fields: Fields, name: str, default: int | None = None) -> int:
    """The head dimension, which must be even, since rotary embeddings turn its halves against each other."""
    return fields.integer(name, 2, MAX_HEADS, default, multiple_of=2)


def read_num_heads(fields: Fields, num_kv_heads: int) -> int:
    """The number of query heads, a multiple of the number of key heads."""
    return fields.integer("num_attention_heads", 1, MAX_HEADS, multiple_of=num_kv_heads)


def rope_fields(fields: Fields, kind: LayerKind = "full_attention") -> Fields:
    """What a config says of the rotary embedding of layers of this kind, with the precedence that ``transformers`` has
    (``convert_rope_params_to_dict``): ``rope_scaling`` where there is one, else ``rope_parameters``, which may have an
    entry for each kind; and what these don't say at the top level."""
    given = "rope_scaling" if fields.given("rope_scaling") else "rope_parameters"
    rope = fields.nested(given, {})
    if kind in rope and "rope_theta" in rope:
        raise WeightsFailure(
            f"{given} in {fields.where} says twice how {kind} layers turn.", "Take config.json as it was published."
        )
    if kind in rope:
        rope = rope.nested(kind)
    elif any(each in rope for each in KINDS):
        raise WeightsFailure(f"{given} in {fields.where} lacks {kind}.", "Take config.json as it was published.")
    return fields.only("rope_theta", "partial_rotary_factor").merged(rope)


def read_rope(
    fields: Fields, head_dim: int, theta: float | None = None, kind: LayerKind = "full_attention"
) -> tuple[RopeConfig, float]:
    """The rotary embedding of layers of this kind, and the factor of attention's scores that comes with it. ``theta``:
    the default of configs that don't say. Raises ``WeightsFailure`` for kinds of it that are not computed."""
    rope = rope_fields(fields, kind)
    if rope.number("partial_rotary_factor", 0, 1e6, 1.0) != 1.0:
        raise WeightsFailure(
            "This checkpoint turns a part of each head alone (partial_rotary_factor), which the engine lacks.",
            "Name another model.",
        )
    theta = rope.number("rope_theta", 1, MAX_THETA, theta)
    scaling = rope.text("rope_type" if "rope_type" in rope else "type", ROPE_KINDS, "default")
    if scaling == "default":
        return RopeConfig(theta, head_dim), 1.0
    return _scaled_rope(fields, rope, cast(RopeKind, scaling), theta, head_dim)


def _scaled_rope(fields: Fields, rope: Fields, kind: RopeKind, theta: float, head_dim: int) -> tuple[RopeConfig, float]:
    factor = rope.number("factor", 0, 1e6)
    if kind == "linear":
        return RopeConfig(theta, head_dim, scaling=RopeScaling(kind, factor)), 1.0
    trained = _trained_context(fields, rope)
    if kind == "llama3":
        slow = rope.number("low_freq_factor", 0, 1e6)
        fast = rope.number("high_freq_factor", slow, 1e6)
        return RopeConfig(theta, head_dim, scaling=RopeScaling(kind, factor, trained, slow, fast)), 1.0
    slow = rope.number("beta_slow", 0, 1e6, 1.0)
    fast = rope.number("beta_fast", slow, 1e6, 32.0)
    scaling = RopeScaling(kind, factor, trained, slow, fast, rope.flag("truncate", True))
    # YaRN multiplies queries and keys by the same factor: their scores by its square.
    return RopeConfig(theta, head_dim, scaling=scaling), _yarn_magnitude(rope, factor) ** 2


def _trained_context(fields: Fields, rope: Fields) -> int:
    if "original_max_position_embeddings" in fields:
        return fields.integer("original_max_position_embeddings", 1, MAX_POSITIONS)
    if "original_max_position_embeddings" in rope:
        return rope.integer("original_max_position_embeddings", 1, MAX_POSITIONS)
    return fields.integer("max_position_embeddings", 1, MAX_POSITIONS)


def _yarn_magnitude(rope: Fields, factor: float) -> float:
    """YaRN's ``attention_factor``, or what follows from the scaling factor where it isn't given."""
    if "attention_factor" in rope:
        return rope.number("attention_factor", 0, 1e6)

    def magnitude(weight: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * weight * log(factor) + 1.0

    if rope.given("mscale") and rope.given("mscale_all_dim"):
        return magnitude(rope.number("mscale", 0, 1e6)) / magnitude(rope.number("mscale_all_dim", 0, 1e6))
    return magnitude(1.0)


def optional_integer(fields: Fields, name: str, high: int) -> int | None:
    """A field's whole number from 1 to ``high``; None where the field is missing."""
    return fields.integer(name, 1, high) if name in fields else None


def optional_number(fields: Fields, name: str) -> float | None:
    """A field's number above 0; None where the field is missing."""
    return fields.number(name, 0, 1e6) if name in fields else None
