"""Random MTP assistants in the published layout, written by ``transformers``."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from transformers import Gemma4AssistantConfig, Gemma4AssistantForCausalLM, Gemma4TextConfig, PreTrainedModel

from support.checkpoints import randomised
from tests.engine.edited import edit_config

HIDDEN = 48
KINDS = ["sliding_attention"] * 3 + ["full_attention"]


def lending_keys() -> AbstractContextManager[Any]:
    """To build targets and assistants in: ``transformers`` 5.23 refuses a config all of whose layers borrow their keys,
    and lets targets without borrowing layers lend none, so its own assistants don't start."""
    return patch.object(Gemma4TextConfig, "kv_sharing_modes", property(_sharing_modes))


def _sharing_modes(config: Gemma4TextConfig) -> list[str | None]:
    """The last layer of each kind that has keys of its own lends them to those behind, or to an assistant."""
    own = config.layer_types[: config.num_hidden_layers - config.num_kv_shared_layers]
    lenders = {len(own) - 1 - own[::-1].index(kind) for kind in set(own)}
    modes = ["store" if index in lenders else None for index in range(len(own))]
    return [*modes, *["reuse"] * config.num_kv_shared_layers]


def assistant_of(target: PreTrainedModel, seed: int, kinds: list[str] = KINDS) -> Gemma4AssistantForCausalLM:
    """A random assistant of a target, as small as that: three sliding layers and a full one."""
    text: dict[str, Any] = target.config.get_text_config().to_dict()
    own = {
        "hidden_size": HIDDEN,
        "intermediate_size": 64,
        "num_hidden_layers": len(kinds),
        "layer_types": kinds,
        "num_kv_shared_layers": len(kinds),
        "enable_moe_block": False,
        "hidden_size_per_layer_input": 0,
        "vocab_size_per_layer_input": 0,
        "final_logit_softcapping": None,
        "per_layer_config": _overrides(text, kinds),
    }
    config = Gemma4AssistantConfig(text_config={**text, **own}, backbone_hidden_size=text["hidden_size"])
    with lending_keys():
        model = randomised(Gemma4AssistantForCausalLM(config), seed)
    with torch.no_grad():  # of either sign, as in the targets
        norm = model.model.norm.weight
        norm.copy_(2 * torch.randn(norm.shape, generator=torch.Generator().manual_seed(seed + 1)))
    return model


def _overrides(text: dict[str, Any], kinds: list[str]) -> dict[str, Any]:
    """Of full layers, as the target's have them."""
    given = {text["layer_types"][int(index)]: each for index, each in text["per_layer_config"].items()}
    return {str(index): given[kind] for index, kind in enumerate(kinds) if kind in given}


def write_assistant(folder: Path, target: PreTrainedModel, seed: int = 0, **changes: Any) -> Gemma4AssistantForCausalLM:
    """Saves one and returns it; ``changes`` go to the top level of its config."""
    model = assistant_of(target, seed)
    model.save_pretrained(folder)
    edit_config(folder, **changes)
    return model
