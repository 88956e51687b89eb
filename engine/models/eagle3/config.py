"""Reads an EAGLE-3's ``config.json`` in each published layout. They differ in where fields stand and in how they count
layers: SafeAILab's names none, SpecForge and NVIDIA name outputs (``eagle_config``), speculators what stands before a
layer, as does NVIDIA where the last number is the target's depth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, TypeVar

from ...commands import NO_DRAFTER
from ...errors import Option, WeightsFailure
from ...files.json_fields import Fields
from ...layer_config import (
    MAX_HEADS,
    MAX_LAYERS,
    MAX_SIZE,
    MAX_VOCABULARY,
    Activation,
    AttentionConfig,
    optional_integer,
)
from ..dflash.config import read_layers
from ..dflash.speculators import reduced
from ..family import EMBEDDED, DrafterConfig, DrafterKind, Json, OwnTables, TargetConfig
from ..unread_fields import refuse_unread

if TYPE_CHECKING:
    from ...files.headers import Headers
    from ...kv_cache.layer_state import StatefulLayer
    from .modules import Eagle3

Kind = TypeVar("Kind", bound="Eagle3Config")

BLOCK_SIZE = 16
"""The anchor and as many drafts as a pass of the target verifies; ``speculation/depth.py`` says how many are worth it,
whatever number a trainer advises."""
THETA = 10_000.0
"""Of files that name no ``rope_theta``: the default of Llama's config."""
TAPS = "eagle_aux_hidden_state_layer_ids"
WHERE = "the drafter's config.json"
ANOTHER = ("Name another drafter with ", Option("drafter"), ", or go without: ", Option("drafter", NO_DRAFTER), ".")
FC_NORMS = ("aux_norm_low", "aux_norm_mid", "aux_norm_high")
"""What older files of SpecForge call ``fc_norm.0`` to ``fc_norm.2``."""
OF_MODELOPT = {
    "use_aux_hidden_state": (True, "that reads the target's last hidden state alone, as EAGLE-1"),
    "use_input_layernorm_in_first_layer": (True, "without a norm before its layer"),
    "use_last_layernorm": (True, "without a norm before its head"),
    "use_mtp_layernorm": (False, "with norms as an MTP layer's"),
}
"""Switches of NVIDIA's ``eagle_config``, with the values that are computed here and words for what others are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Eagle3Config(DrafterConfig):
    """An EAGLE-3 drafter. ``target_layer_ids`` ends with ``EMBEDDED``, as the target's embeddings are read, too."""

    kind: ClassVar[DrafterKind] = "eagle3"

    hidden_size: int
    intermediate_size: int
    rms_norm_eps: float
    counts: Literal["outputs", "inputs", "by depth"]
    """What the taps' numbers in the file are of, before ``beside`` made outputs of them: layers' outputs, what stands
    before layers, or that where the highest number is the target's depth."""
    num_target_layers: int | None = None
    norm_style: Literal["gemma", "qwen"] = "qwen"
    logit_softcap: float | None = None
    head_norms: bool = False
    """Whether queries and keys are normed: its files hold the norms, whatever the config calls the layer."""
    feature_norms: Literal["none", "together", "each"] = "none"
    """Which norms stand before the product of features: none, one over all taps (``norm_before_fc``), one each."""
    feature_bias: bool = False
    residual_normed: bool = False
    """``norm_before_residual``: whether what a token is paired with enters the residual stream normed."""
    brings_head: bool = False
    """Whether its makers always put a head into its files: without one it would guess by another."""
    feeds_normed: bool = False
    """``norm_output``: whether the next token is paired with what the head reads, behind the final norm."""

    @property
    def activation(self) -> Activation:
        return "silu"

    @property
    def moe(self) -> None:
        """Its layers have no experts."""

    @property
    def taps(self) -> tuple[int, ...]:
        """The target's layers whose outputs are the features."""
        return tuple(tap for tap in self.target_layer_ids if tap != EMBEDDED)

    @property
    def states(self) -> tuple[StatefulLayer, ...]:
        from ...kv_cache.last_rows import LastRows

        return (*self.layers, LastRows(self.hidden_size))

    def beside(self, target: TargetConfig) -> Eagle3Config:
        depth = len(target.layers)
        taps = self.taps or (1, depth // 2 - 1, depth - 4)  # outputs, or where ids are None the trainers' default
        if self.counts == "inputs" or (self.counts == "by depth" and max(taps) == depth):
            taps = tuple(tap - 1 for tap in taps)
        if min(taps) < 0:
            _refuse(f"that reads target layers {list(taps)}, and this target has {depth}")
        return replace(self, target_layer_ids=(*taps, EMBEDDED), counts="outputs")

    def with_files(self, headers: Headers) -> Eagle3Config:
        if self.brings_head and "lm_head.weight" not in headers:
            _refuse("whose files lack its head (lm_head.weight)")
        names = {name.removeprefix("midlayer.").removeprefix("layers.0.") for name in headers}
        layers = tuple(replace(layer, biases="self_attn.q_proj.bias" in names) for layer in self.layers)
        head_norms = "self_attn.q_norm.weight" in names
        return replace(self, layers=layers, head_norms=head_norms, feature_bias="fc.bias" in names)

    def tensor_name(self, headers: Headers) -> Callable[[str], str]:
        older = any(name.startswith("midlayer.") for name in headers)
        norms = {f"fc_norm.{index}.": f"{name}." for index, name in enumerate(FC_NORMS) if f"{name}.weight" in headers}
        renamed = norms | ({"layers.0.": "midlayer."} if older else {})
        for index in range(1, len(self.layers)):  # SGLang's name for what stands before a layer's attention
            if f"layers.{index}.hidden_norm.weight" in headers:
                renamed[f"layers.{index}.input_layernorm."] = f"layers.{index}.hidden_norm."

        def name_of(parameter: str) -> str:
            begin = next((each for each in renamed if parameter.startswith(each)), "")
            return renamed.get(begin, "") + parameter.removeprefix(begin)

        return name_of

    def check(self, target: TargetConfig) -> None:
        depth = len(target.layers)
        if self.hidden_size != target.hidden_size:
            _refuse(f"for a target of width {self.hidden_size}, and this one's is {target.hidden_size}")
        if self.num_target_layers not in (None, depth):
            _refuse(f"for a target of {self.num_target_layers} layers, and this one has {depth}")
        if self.vocab_size not in (None, target.vocab_size):
            _refuse(f"for a vocabulary of {self.vocab_size} tokens, and this target's has {target.vocab_size}")
        if max(self.taps) >= depth or len(set(self.taps)) < len(self.taps):
            _refuse(f"that reads target layers {list(self.taps)}, and this target has {depth}")

    def build(self) -> Eagle3:
        from .modules import Eagle3

        return Eagle3(self)


def read_eagle3(config: Json) -> Eagle3Config:
    """Reads SafeAILab's, SpecForge's and NVIDIA's layout; raises ``WeightsFailure`` for a damaged config, and for what
    is not computed."""
    whole = Fields(config, WHERE)
    nested = "eagle_config" in whole
    fields = whole.merged(whole.nested("eagle_config", {}))
    for name, (computed, words) in OF_MODELOPT.items():
        if fields.flag(name, computed) != computed:
            _refuse(f"{words} ({name})")
    if fields.integer("parallel_draft_step", 1, MAX_SIZE, 1) > 1:
        _refuse("that drafts several tokens in one pass (parallel_draft_step)")
    vocabulary = fields.integer("vocab_size", 1, MAX_VOCABULARY)
    tables = reduced(fields, vocabulary)
    read = read_as(Eagle3Config, fields, fields, tables, _layers(fields))
    return replace(read, counts="by depth" if nested or TAPS in fields else "outputs")


def read_speculators_eagle3(config: Json) -> Eagle3Config:
    """Reads an ``eagle3`` of the *speculators* format; raises as ``read_eagle3``."""
    fields = Fields(config, WHERE)
    layers = fields.nested("transformer_layer_config")
    vocabulary = layers.integer("vocab_size", 1, MAX_VOCABULARY)
    read = read_as(Eagle3Config, fields, layers, reduced(fields, vocabulary), _layers(layers))
    return replace(read, counts="inputs" if TAPS in fields else "outputs")


def read_deepspec_eagle3(config: Json) -> Eagle3Config:
    """Reads DeepSpec's layout, whose taps are outputs and whose tables are in its files; raises as ``read_eagle3``."""
    return replace(read_eagle3(deepspec_fields(config)), counts="outputs", brings_head=True)


def deepspec_fields(config: Json) -> dict[str, Any]:
    """A config of DeepSpec with taps called as others call them; refuses one of several layers."""
    fields = Fields(config, WHERE)
    if fields.integer("num_hidden_layers", 1, MAX_LAYERS) > 1:
        _refuse("with several layers, each of which reads tokens (num_hidden_layers)")
    return {**config, TAPS: list(fields.integers("target_layer_ids", 0, MAX_LAYERS))}


def read_as(
    kind: type[Kind], fields: Fields, layers: Fields, tables: OwnTables, attention: tuple[AttentionConfig, ...]
) -> Kind:
    """Reads a config of this kind. ``layers``: what describes its layers, of which ``attention`` has been read. Taps
    are taken for outputs."""
    hidden = layers.integer("hidden_size", 1, MAX_SIZE)
    if fields.integer("target_hidden_size", 1, MAX_SIZE, hidden) != hidden:
        _refuse(f"of width {hidden} for a target of another width (target_hidden_size)")
    refuse_unread(fields.merged(layers))
    taps = fields.integers(TAPS, 0, MAX_LAYERS) if TAPS in fields else ()
    if TAPS in fields and not taps:
        _refuse(f"that reads no layer of its target ({TAPS})")
    if fields.integer("num_aux_hidden_states", 1, MAX_LAYERS, len(taps) or 3) != (len(taps) or 3):
        _refuse(f"that reads another number of layers than it names (num_aux_hidden_states, {TAPS})")
    each, together = fields.flag("fc_norm", False), fields.flag("norm_before_fc", False)
    each = each or fields.flag("use_aux_norm", False)
    if each and together:
        _refuse("with two kinds of norms before its features (fc_norm, norm_before_fc)")
    return kind(
        layers=attention, block_size=BLOCK_SIZE, target_layer_ids=taps,
        vocab_size=layers.integer("vocab_size", 1, MAX_VOCABULARY), tables=tables,
        leftovers=("verifier_norm.", "verifier_lm_head."), hidden_size=hidden,
        intermediate_size=layers.integer("intermediate_size", 1, MAX_SIZE),
        rms_norm_eps=layers.number("rms_norm_eps", 0, 1, 1e-6), counts="outputs",
        num_target_layers=optional_integer(fields, "num_target_layers", MAX_LAYERS),
        feature_norms="each" if each else "together" if together else "none",
        residual_normed=fields.flag("norm_before_residual", False), feeds_normed=fields.flag("norm_output", False),
    )  # fmt: skip


def _layers(layers: Fields) -> tuple[AttentionConfig, ...]:
    """The attention of layers that are Llama's or Qwen3's."""
    hidden = layers.integer("hidden_size", 1, MAX_SIZE)
    heads = layers.integer("num_attention_heads", 1, MAX_HEADS)
    missing = {"num_key_value_heads": heads, "head_dim": hidden // heads, "num_hidden_layers": 1, "rope_theta": THETA}
    return read_layers(Fields(missing, layers.where).merged(layers).merged(Fields({"is_causal": True}, layers.where)))


def _refuse(what: str) -> NoReturn:
    raise WeightsFailure(f"This EAGLE-3 drafter is one {what}.", ANOTHER)
