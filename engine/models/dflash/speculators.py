"""Reads DFlash, DFlash 2 and DSpark drafters in the *speculators* format (RedHat's and others'): a config of another
layout, taps that count from the embedding, rows and logits without the target's scale and cap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from ...files.json_fields import Fields
from ...layer_config import MAX_LAYERS, MAX_VOCABULARY
from ..family import Json, OwnTables
from .config import CANDIDATES, DFlashConfig, refuse
from .dspark import HEAD_DEFAULTS, block_of, read_markov

LAYERS_DEFAULTS = {"rms_norm_eps": 1e-6, "hidden_act": "silu", "attention_bias": False, "rope_theta": 1e4}
"""Fields of ``transformer_layer_config`` that are left out where they have these values (Qwen3Config's)."""
SECOND_DEFAULTS = {"conv_kernel_size": 2, "conv_group_size": 16, "selector_rank": 256, "selector_top_k": 16}
"""The same of a DFlash 2's own fields."""
OF_OTHERS = ("transformer_layer_config", "dflash_config")
"""Sections that are read by themselves, or that a converter left of another layout, where taps count otherwise."""
LEFTOVERS = ("verifier_norm.", "verifier_lm_head.")
"""Beginnings of names of tensors that training leaves in the files."""


def read_speculators(config: Json) -> DFlashConfig:
    """Reads the ``config.json`` of a ``dflash``, ``dflash2`` or ``dspark``; raises ``WeightsFailure`` for a damaged
    one."""
    fields = Fields(config, "the drafter's config.json")
    kind = fields.text("speculators_model_type", ("dflash", "dflash2", "dspark"))
    second = kind == "dflash2"
    layers = fields.nested("transformer_layer_config")
    vocabulary = layers.integer("vocab_size", 1, MAX_VOCABULARY)
    tables = reduced(fields, vocabulary)
    first_drafts, block = fields.flag("sample_from_anchor", False), fields.integer("block_size", 2, 1 << 10, 8)
    taps = fields.integers("aux_hidden_state_layer_ids", 0, MAX_LAYERS)
    if 0 in taps:
        refuse("that reads the target's embedding (aux_hidden_state_layer_ids)")
    flat: dict[str, Any] = {
        **LAYERS_DEFAULTS,
        **(SECOND_DEFAULTS if second else {}),
        **{name: value for name, value in config.items() if name not in OF_OTHERS},
        **config["transformer_layer_config"],
        "block_size": block_of(block, first_drafts),  # theirs counts rows, whichever of them draft
        "target_layer_ids": [tap - 1 for tap in taps],  # 0 is the embedding, as in hidden_states of transformers
        "input_embedding_scale": 1.0,  # trained on raw rows of the embedding, whatever the target's scale
        "final_logit_softcapping": None,  # and without the target's cap
    }
    flat.pop("sample_from_anchor", None)
    if fields.flag("sliding_window_non_causal", second):
        flat["is_causal"] = False
    reader = DFlashConfig.second_from_json if second else DFlashConfig.from_json
    markov = read_markov(Fields({**HEAD_DEFAULTS, **config}, fields.where)) if kind == "dspark" else None
    first: Literal[0, 1] = 0 if first_drafts else 1
    return replace(reader(flat), tables=tables, leftovers=LEFTOVERS, first_slot=first, markov=markov)


def reduced(fields: Fields, vocabulary: int) -> OwnTables:
    """The vocabulary that a drafter has to itself (``draft_vocab_size``), among ``vocabulary`` tokens of its target.
    Raises ``WeightsFailure`` for a larger one, and for one that has no candidates to choose among."""
    count = fields.integer("draft_vocab_size", CANDIDATES, vocabulary, vocabulary)
    return OwnTables(vocabulary=None if count == vocabulary else count)
