"""The three published targets that have a drafter, as tiny checkpoints: ``transformers`` writes them, in shards, with
vision tensors, and with the published numbers of heads, for how queries share keys is where kernels go wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from transformers.models.gemma4 import Gemma4Config, Gemma4ForConditionalGeneration
from transformers.models.gemma4_unified import Gemma4UnifiedConfig, Gemma4UnifiedForConditionalGeneration

from support.checkpoints import FULL, SLIDING, randomised, target_config

Reference: TypeAlias = Gemma4ForConditionalGeneration | Gemma4UnifiedForConditionalGeneration

SHARD_SIZE = "300KB"
VISION_TOWER = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "patch_size": 4,
    "position_embedding_size": 16,
}
VISION_EMBEDDER = {"mm_embed_dim": 64, "mm_posemb_size": 8}
MOE_ONLY = ("enable_moe_block", "num_experts", "top_k_experts", "moe_intermediate_size")


@dataclass(frozen=True, slots=True)
class Published:
    """What one of the targets is made of; heads as published, everything else small."""

    heads: int
    sliding_kv_heads: int
    full_kv_heads: int
    moe: bool = False
    unified: bool = False


PUBLISHED = {
    "26B-A4B": Published(16, 8, 2, moe=True),
    "31B": Published(32, 16, 4),
    "12B": Published(16, 8, 1, unified=True),
}


def write_published(folder: Path, name: str, seed: int, published: Published | None = None) -> Reference:
    """Saves a random target of this kind in several shards, and returns it. ``published``: another number of heads."""
    published = published or PUBLISHED[name]
    text = _text_config(published)
    shared: dict[str, Any] = {"audio_config": None, "tie_word_embeddings": True, "eos_token_id": [1, 106]}
    model: Reference
    if published.unified:
        unified = {key: value for key, value in text.items() if key not in MOE_ONLY}
        unified["model_type"] = "gemma4_unified_text"
        model = Gemma4UnifiedForConditionalGeneration(
            Gemma4UnifiedConfig(text_config=unified, vision_config=VISION_EMBEDDER, **shared)
        )
    else:
        model = Gemma4ForConditionalGeneration(Gemma4Config(text_config=text, vision_config=VISION_TOWER, **shared))
    randomised(model, seed).save_pretrained(folder, max_shard_size=SHARD_SIZE)
    _write_heads_as_published(folder, published)
    return model


def _text_config(published: Published) -> dict[str, Any]:
    """Two periods of a shorter pattern than the published five to one, so that a full layer lies in the middle."""
    text: dict[str, Any] = target_config([SLIDING, SLIDING, FULL] * 2, published.moe).to_dict()["text_config"]
    del text["per_layer_config"]
    return text | {
        "num_attention_heads": published.heads,
        "num_key_value_heads": published.sliding_kv_heads,
        "num_global_key_value_heads": published.full_kv_heads,
        "head_dim": 8,
        "global_head_dim": 16,
    }


def _write_heads_as_published(folder: Path, published: Published) -> None:
    """The published files hold the two ``global_*`` fields; newer ``transformers`` saves overrides per layer."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    del config["text_config"]["per_layer_config"]
    config["text_config"] |= {"global_head_dim": 16, "num_global_key_value_heads": published.full_kv_heads}
    path.write_text(json.dumps(config))
