"""Makes the ``config.json`` of a Llama that comes as a GGUF file alone."""

from __future__ import annotations

from typing import Any

from ...errors import WeightsFailure
from ...files.gguf import Gguf

ENDS = ("tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id")
"""The file's fields for the tokens that end a text, and a turn in a conversation."""
FIELDS = {
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_hidden_layers": "block_count",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "rope.dimension_count",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "rope_theta": "rope.freq_base",
    "max_position_embeddings": "context_length",
}
"""Fields of ``config.json``, and their names in the file."""


def config_of(file: Gguf) -> dict[str, Any]:
    """The contents of ``config.json``. Raises ``WeightsFailure`` where the file changes rotary frequencies by numbers
    of its own."""
    fields = file.fields
    if "rope_freqs.weight" in file.tensors or fields.get("llama.rope.scaling.type", "none") != "none":
        raise WeightsFailure(
            "This GGUF file scales its rotary frequencies, and has no config.json that says how.",
            "Put the original model's config.json beside it.",
        )
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        **{name: fields[f"llama.{key}"] for name, key in FIELDS.items() if f"llama.{key}" in fields},
        "vocab_size": file.lengths.get("tokenizer.ggml.tokens"),
        "bos_token_id": fields.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": [fields[key] for key in ENDS if key in fields],
        "tie_word_embeddings": "output.weight" not in file.tensors,
    }
