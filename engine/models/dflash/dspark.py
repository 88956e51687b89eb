"""Reads DSpark drafters: DFlash's layers, and a head that corrects each guess by the one before it. DeepSpec copies its
target's config, SpecForge has z-lab's layout; the *speculators* format has fields of the same names, read in
``speculators.py``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, TypeVar

from ...commands import MAX_BLOCK_SIZE
from ...files.json_fields import Fields
from ...layer_config import MAX_SIZE, MAX_VOCABULARY
from ..family import Json
from .config import CAUSAL, DFlashConfig, MarkovConfig, refuse

Kind = TypeVar("Kind", bound=DFlashConfig)

HEAD_DEFAULTS = {
    "markov_rank": 256,
    "markov_head_type": "vanilla",
    "enable_confidence_head": True,
    "confidence_head_with_markov": True,
}
"""The fields of the head, and what they are in the speculators format where they are missing."""
OF_PICTURES = ("partial_rotary_factor", "mrope_section", "mrope_interleaved")
"""What a copied config says of its target's rotary embedding and a drafter's layers, Qwen3's, don't have."""
FULL = "full_attention"
FIRST_DRAFTS = ("sample_from_anchor", "query_zero_predicts_next", "shift_label")
"""What configs call whether a block's first row, that of the anchor, drafts, too."""


def read_markov(fields: Fields) -> MarkovConfig | None:
    """What a config says of the head; None for rank 0, which is a DFlash. Raises ``WeightsFailure`` for another kind of
    head."""
    rank = fields.integer("markov_rank", 0, MAX_SIZE)
    if rank and str(fields.raw("markov_head_type")).lower() == "rnn":
        refuse("whose head carries a state from guess to guess (markov_head_type rnn)")
    kind = fields.text("markov_head_type", ("vanilla", "gated"), "vanilla") if rank else "vanilla"
    confides = fields.flag("enable_confidence_head", fields.number("confidence_head_alpha", -1, 1e6, 0.0) > 0)
    by_guesses = confides and fields.flag("confidence_head_with_markov", False)
    if not rank and by_guesses:
        refuse("whose confidence reads a head that it has not (markov_rank 0)")
    if not rank and confides:
        refuse("that says how sure it is without correcting its guesses (markov_rank 0, enable_confidence_head)")
    confidence: Literal["none", "of rows", "of rows and guesses"] = "of rows" if confides else "none"
    return MarkovConfig(rank, kind == "gated", "of rows and guesses" if by_guesses else confidence) if rank else None


def read_deepspec(config: Json) -> DFlashConfig:
    """Reads a drafter of DeepSpec, whose config is its target's with a drafter's fields. It sees its whole block, and
    brings its embedding and its head. Raises ``WeightsFailure`` for a damaged one."""
    fields = Fields(config, "the drafter's config.json")
    depth = fields.integer("num_hidden_layers", 1, MAX_SIZE)
    flat = {name: value for name, value in config.items() if name not in OF_PICTURES}
    for name in ("rope_parameters", "rope_scaling"):
        if isinstance(section := config.get(name), Mapping):
            own = {each: value for each, value in section.items() if each not in OF_PICTURES}
            flat[name] = own if own.get("rope_type", own.get("type", "default")) != "mrope" else None
    flat["layer_types"] = [FULL] * depth if config.get("layer_types") is None else config["layer_types"]
    flat["is_causal"] = False
    flat["input_embedding_scale"], flat["final_logit_softcapping"] = 1.0, None
    return replace(read_flat(flat, DFlashConfig), leftovers=())


def read_specforge(config: Json) -> DFlashConfig:
    """Reads a drafter of SpecForge, in z-lab's layout, with the target's embedding and head. It sees its whole block.
    Raises ``WeightsFailure`` for a damaged one."""
    fields = Fields(config, "the drafter's config.json")
    both = fields.merged(fields.nested("dflash_config", {}))
    flat = {name: value for name, value in config.items() if name != "dflash_config"}
    flat |= config.get("dflash_config") or {}
    if not any(name in both for name in CAUSAL):
        flat["is_causal"] = False
    return read_flat(flat, DFlashConfig)


def read_flat(flat: dict[str, Any], kind: type[Kind]) -> Kind:
    """Reads a flat config whose block's first row drafts, unless it says otherwise."""
    fields = Fields(flat, "the drafter's config.json")
    flags = {name: fields.flag(name, True) for name in FIRST_DRAFTS if name in fields}
    if "logits_start" in fields:
        flags["logits_start"] = fields.integer("logits_start", 0, 1) == 0
    if len(set(flags.values())) > 1:
        refuse(f"that says twice which row drafts first, and not the same ({', '.join(flags)})")
    first_drafts = all(flags.values())
    fields.integer("vocab_size", 1, MAX_VOCABULARY)  # its head has a row for each token
    flat["block_size"] = block_of(fields.integer("block_size", 2, 1 << 10), first_drafts)
    markov = read_markov(fields)
    return replace(kind.from_json(flat), markov=markov, first_slot=0 if first_drafts else 1)


def block_of(rows: int, first_drafts: bool) -> int:
    """The tokens of a block with so many rows, anchor included, as far as a round takes them: a first row that drafts
    stands for a token more."""
    return min(rows + 1, MAX_BLOCK_SIZE) if first_drafts else rows
