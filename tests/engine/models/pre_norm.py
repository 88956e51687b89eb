"""Tiny Llamas and Qwen3s with random weights, in the published layouts, as ``transformers`` saves them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from support.checkpoints import VOCAB_SIZE, randomised, write_tokenizer

FAMILIES = ("llama", "qwen3", "qwen3_moe")
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
    "rope_theta": 1e3,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "rope_theta": 1e3}
LINEAR = {"rope_type": "linear", "factor": 2.5, "rope_theta": 1e3}
PLAIN = {"rope_type": "default", "rope_theta": 1e4}
SHAPE = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": [1, 106],
}
EXPERTS = {"num_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 48, "norm_topk_prob": True}


def random_model(family: str, seed: int = 0, rope: dict[str, Any] = PLAIN, **changes: Any) -> PreTrainedModel:
    """``changes`` go into the config."""
    values = {**SHAPE, "rope_parameters": dict(rope), **changes}
    if family == "llama":
        return randomised(LlamaForCausalLM(LlamaConfig(**values)), seed)
    if family == "qwen3":
        return randomised(Qwen3ForCausalLM(Qwen3Config(**values)), seed)
    return randomised(Qwen3MoeForCausalLM(Qwen3MoeConfig(**{**values, **EXPERTS, **changes})), seed)


def write_target(folder: Path, family: str, seed: int = 0, rope: dict[str, Any] = PLAIN, **changes: Any) -> Any:
    """A random checkpoint, whose model is returned."""
    model = random_model(family, seed, rope, **changes)
    model.save_pretrained(folder)
    write_tokenizer(folder)
    (folder / "chat_template.jinja").unlink()
    return model
