"""The sizes of the bundled pair, and the ``config.json`` that each model ships with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

PAD, EOS, BOS, UNK, MASK = range(5)
TURN_END = 106
STOP_IDS = (EOS, TURN_END)

LayerKind = Literal["sliding_attention", "full_attention"]


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """Heads of one kind of attention layer."""

    heads: int
    kv_heads: int
    head_dim: int


@dataclass(frozen=True, slots=True)
class TargetShape:
    """A Gemma 4 mixture-of-experts target, small enough to ship: 7.6 M parameters with the defaults.

    Every fourth layer attends to everything with one wide key head that doubles as value head (``k_eq_v``); the
    others see ``window`` tokens. Same features as google/gemma-4-26B-A4B-it, so that one loader serves both.
    """

    vocab_size: int = 4096
    hidden_size: int = 256
    num_layers: int = 8
    sliding: AttentionShape = AttentionShape(heads=4, kv_heads=2, head_dim=64)
    full: AttentionShape = AttentionShape(heads=4, kv_heads=1, head_dim=128)
    full_every: int = 4
    window: int = 256
    intermediate_size: int = 256
    num_experts: int = 8
    experts_per_token: int = 2
    expert_intermediate_size: int = 64
    sliding_theta: float = 1e4
    full_theta: float = 1e6
    full_rotary_fraction: float = 0.25
    softcap: float = 30.0
    epsilon: float = 1e-6
    max_positions: int = 8192

    @property
    def layer_kinds(self) -> list[LayerKind]:
        return [
            "full_attention" if (layer + 1) % self.full_every == 0 else "sliding_attention"
            for layer in range(self.num_layers)
        ]

    def attention(self, kind: LayerKind) -> AttentionShape:
        return self.full if kind == "full_attention" else self.sliding

    def to_config(self) -> dict[str, Any]:
        """The published layout of a Gemma 4 checkpoint without vision and audio towers."""
        text = {
            "model_type": "gemma4_text",
            "hidden_size": self.hidden_size,
            "num_hidden_layers": self.num_layers,
            "intermediate_size": self.intermediate_size,
            "num_attention_heads": self.sliding.heads,
            "num_key_value_heads": self.sliding.kv_heads,
            "head_dim": self.sliding.head_dim,
            "global_head_dim": self.full.head_dim,
            "num_global_key_value_heads": self.full.kv_heads,
            "attention_k_eq_v": True,
            "attention_bias": False,
            "attention_dropout": 0.0,
            "sliding_window": self.window,
            "layer_types": self.layer_kinds,
            "rope_parameters": {
                "sliding_attention": {"rope_type": "default", "rope_theta": self.sliding_theta},
                "full_attention": {
                    "rope_type": "proportional",
                    "partial_rotary_factor": self.full_rotary_fraction,
                    "rope_theta": self.full_theta,
                },
            },
            "hidden_activation": "gelu_pytorch_tanh",
            "rms_norm_eps": self.epsilon,
            "vocab_size": self.vocab_size,
            "vocab_size_per_layer_input": self.vocab_size,
            "hidden_size_per_layer_input": 0,
            "num_kv_shared_layers": 0,
            "use_double_wide_mlp": False,
            "enable_moe_block": True,
            "num_experts": self.num_experts,
            "top_k_experts": self.experts_per_token,
            "moe_intermediate_size": self.expert_intermediate_size,
            "final_logit_softcapping": self.softcap,
            "max_position_embeddings": self.max_positions,
            "tie_word_embeddings": True,
            "initializer_range": 0.02,
            "use_cache": True,
            "dtype": "bfloat16",
            "bos_token_id": BOS,
            "eos_token_id": EOS,
            "pad_token_id": PAD,
        }
        return {
            "architectures": ["Gemma4ForConditionalGeneration"],
            "model_type": "gemma4",
            "text_config": text,
            "vision_config": None,
            "audio_config": None,
            "tie_word_embeddings": True,
            "dtype": "bfloat16",
            "bos_token_id": BOS,
            "pad_token_id": PAD,
            "eos_token_id": list(STOP_IDS),
        }


@dataclass(frozen=True, slots=True)
class DFlashShape:
    """A DFlash drafter in the z-lab layout: one causal sliding layer, then one bidirectional full layer."""

    hidden_size: int = 256
    attention: AttentionShape = AttentionShape(heads=4, kv_heads=2, head_dim=64)
    layer_kinds: tuple[LayerKind, ...] = ("sliding_attention", "full_attention")
    window: int = 256
    intermediate_size: int = 768
    tapped_layers: tuple[int, ...] = (1, 3, 5)
    """Decoder layers of the target whose outputs condition the drafter (``target_layer_ids``)."""
    block_size: int = 16
    """Tokens of a block: the anchor and ``block_size - 1`` drafted ones."""
    theta: float = 1e6
    softcap: float = 30.0
    epsilon: float = 1e-6
    max_positions: int = 8192

    def to_config(self, target: TargetShape) -> dict[str, Any]:
        """The keys of the published Gemma drafters, plus those that pin the embedding scale (sqrt of the width)."""
        return {
            "architectures": ["DFlashDraftModel"],
            "attention_bias": False,
            "attention_dropout": 0.0,
            "block_size": self.block_size,
            "bos_token_id": BOS,
            "dflash_config": {
                "block_size": self.block_size,
                "final_logit_softcapping": self.softcap,
                "input_embedding_scale": target.hidden_size**0.5,
                "mask_token_id": MASK,
                "target_layer_ids": list(self.tapped_layers),
            },
            "dtype": "bfloat16",
            "eos_token_id": EOS,
            "final_logit_softcapping": self.softcap,
            "head_dim": self.attention.head_dim,
            "hidden_act": "silu",
            "hidden_size": self.hidden_size,
            "initializer_range": 0.02,
            "intermediate_size": self.intermediate_size,
            "layer_types": list(self.layer_kinds),
            "max_position_embeddings": self.max_positions,
            "max_window_layers": len(self.layer_kinds),
            "model_type": "qwen3",
            "num_attention_heads": self.attention.heads,
            "num_hidden_layers": len(self.layer_kinds),
            "num_key_value_heads": self.attention.kv_heads,
            "num_target_layers": target.num_layers,
            "pad_token_id": PAD,
            "rms_norm_eps": self.epsilon,
            "rope_scaling": None,
            "rope_theta": int(self.theta),
            "sliding_window": self.window,
            "tie_word_embeddings": False,
            "use_cache": True,
            "use_sliding_window": True,
            "vocab_size": target.vocab_size,
        }


TINY_TARGET = TargetShape(
    vocab_size=1024,
    hidden_size=64,
    num_layers=4,
    sliding=AttentionShape(heads=2, kv_heads=1, head_dim=32),
    full=AttentionShape(heads=2, kv_heads=1, head_dim=64),
    full_every=2,
    window=64,
    intermediate_size=128,
    num_experts=4,
    expert_intermediate_size=32,
    max_positions=2048,
)
"""For tests and ``--smoke``: trains on one CPU core in a minute. Its root, 8, is exact in bfloat16 as 16 is."""

TINY_DRAFTER = DFlashShape(
    hidden_size=64,
    attention=AttentionShape(heads=2, kv_heads=1, head_dim=32),
    window=64,
    intermediate_size=128,
    tapped_layers=(0, 1, 2),
    max_positions=2048,
)
