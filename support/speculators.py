"""Drafters in the *speculators* layout, as its trainer writes them: another config, and tables of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from support.checkpoints import drafter_weights

OF_ZLAB = (
    "architectures",
    "model_type",
    "block_size",
    "num_target_layers",
    "final_logit_softcapping",
    "is_causal",
)
"""Fields of z-lab's layout that the other has elsewhere, or not at all."""


def as_speculators(config: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A z-lab drafter's config in the speculators layout, as its trainer writes one: without what equals a default."""
    own = config["dflash_config"]
    second = "selector_rank" in own
    layers = {name: value for name, value in config.items() if name not in (*OF_ZLAB, "dflash_config")}
    layers["rope_parameters"] = {"rope_type": "default", "rope_theta": layers.pop("rope_theta")}
    del layers["hidden_act"], layers["rope_scaling"]
    return {
        "architectures": ["DFlash2DraftModel" if second else "DFlashDraftModel"],
        "speculators_model_type": "dflash2" if second else "dflash",
        "speculators_version": "0.9.0",
        "speculators_config": {"algorithm": "dflash", "proposal_methods": [{"speculative_tokens": 8}]},
        "transformer_layer_config": {**layers, "model_type": "llama"},
        "aux_hidden_state_layer_ids": [tap + 1 for tap in own["target_layer_ids"]],
        "mask_token_id": own["mask_token_id"],
        "block_size": config["block_size"],
        "draft_vocab_size": layers["vocab_size"],
        "sliding_window_non_causal": second,
        **{name: own[name] for name in ("conv_group_size", "selector_rank") if name in own},
        **changes,
    }


def few_tokens(count: int, vocabulary: int, seed: int = 0) -> Tensor:
    """int64 [count]: tokens among which a drafter drafts, in order."""
    return torch.randperm(vocabulary, generator=torch.Generator().manual_seed(seed))[:count].sort().values


def map_of(tokens: Tensor, vocabulary: int) -> dict[str, Tensor]:
    """The tensors that say which tokens these are."""
    used = torch.zeros(vocabulary, dtype=torch.bool)
    used[tokens] = True
    return {"d2t": tokens - torch.arange(len(tokens)), "t2d": used}


def own_tables(hidden: int, vocabulary: int, count: int | None, *, embedding: bool, seed: int = 9) -> dict[str, Tensor]:
    """Random tables of a drafter: a head over ``count`` tokens (None: over all) with their map, and an embedding."""
    generator = torch.Generator().manual_seed(seed)
    tables = {"lm_head.weight": torch.randn(count or vocabulary, hidden, generator=generator)}
    if embedding:
        tables["embed_tokens.weight"] = 0.15 * torch.randn(vocabulary, hidden, generator=generator)
    return tables | ({} if count is None else map_of(few_tokens(count, vocabulary, seed), vocabulary))


def write_speculators(
    folder: Path,
    config: dict[str, Any],
    seed: int = 0,
    count: int | None = None,
    embedding: bool = False,
    **changes: Any,
) -> dict[str, Tensor]:
    """Saves a random DFlash drafter with a head of its own over ``count`` tokens; returns all tensors. ``config``:
    z-lab's."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = config["vocab_size"]
    said = as_speculators(config, draft_vocab_size=count or vocabulary, **changes)
    tensors = drafter_weights(config, seed)
    tensors |= own_tables(config["hidden_size"], vocabulary, count, embedding=embedding)
    (folder / "config.json").write_text(json.dumps(said))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return tensors
