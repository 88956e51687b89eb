"""Tiny checkpoints with random weights, in the published layouts: targets as ``transformers`` saves them, drafters as
z-lab does, and a tokenizer with Gemma's special ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import PreTrainedModel
from transformers.models.gemma4 import Gemma4Config, Gemma4ForConditionalGeneration

from support.tiny_tokenizer import save_tokenizer, train_tokenizer

M = TypeVar("M", bound=PreTrainedModel)

VOCAB_SIZE = 512
WINDOW = 24
DRAFT_WINDOW = 20
SLIDING, FULL = "sliding_attention", "full_attention"
SAMPLE_TEXT = "def sort(items):\n    return sorted(items)  # naïve, für größere Listen: 日本語 🙂\n"


def target_config(kinds: list[str], moe: bool, **changes: Any) -> Gemma4Config:
    """Everything the 26B model has, small: two kinds of layers, shared key and value, experts, a softcap. ``changes``
    go to the text model's part.

    A hidden size of 64 has an exact root. The engine rounds the embedding's scale to bf16 in every dtype,
    ``transformers`` only in bf16, so another size would differ by that rounding.
    """
    experts = {"num_experts": 16, "top_k_experts": 4, "moe_intermediate_size": 32} if moe else {}
    text = {
        "model_type": "gemma4_text",
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": len(kinds),
        "layer_types": kinds,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_global_key_value_heads": 1,
        "head_dim": 16,
        "global_head_dim": 32,
        "attention_k_eq_v": True,
        "attention_bias": False,
        "sliding_window": WINDOW,
        "rope_parameters": {
            SLIDING: {"rope_type": "default", "rope_theta": 1e4},
            FULL: {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6},
        },
        "hidden_activation": "gelu_pytorch_tanh",
        "rms_norm_eps": 1e-6,
        "vocab_size": VOCAB_SIZE,
        "vocab_size_per_layer_input": VOCAB_SIZE,
        "hidden_size_per_layer_input": 0,
        "num_kv_shared_layers": 0,
        "enable_moe_block": moe,
        "final_logit_softcapping": 30.0,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": True,
        "pad_token_id": 0,
        "bos_token_id": 2,
        "eos_token_id": 1,
        **experts,
        **changes,
    }
    eos = [1, 106]
    return Gemma4Config(
        text_config=text, vision_config=None, audio_config=None, tie_word_embeddings=True, eos_token_id=eos
    )


def random_target(kinds: list[str], moe: bool, seed: int, **changes: Any) -> Gemma4ForConditionalGeneration:
    """A random Gemma 4 of ``transformers``."""
    return randomised(Gemma4ForConditionalGeneration(target_config(kinds, moe, **changes)), seed)


def randomised(model: M, seed: int) -> M:
    """The model in fp32 with random weights, none of whose constants is 1: a weight applied nowhere would show.

    Key norms are small, as in the trained models: with a scale of 1.0 they are what keeps attention from being an
    argmax, whose rounding errors no comparison could tell from mistakes. The final norm's weights have either sign, or
    the tied head would find the last token's own embedding again and say nothing else.
    """
    generator = torch.Generator().manual_seed(seed)

    def noise(like: Tensor) -> Tensor:
        return torch.randn(like.shape, generator=generator)

    model = model.float().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_factor = "norm" in name or "scale" in name
            parameter.copy_(1 + 0.25 * noise(parameter) if is_factor else 0.15 * noise(parameter))
            if "k_norm" in name:
                parameter.mul_(0.25)
            if name.endswith("language_model.norm.weight"):
                parameter.copy_(2 * noise(parameter))
        for name, buffer in model.named_buffers():
            if name.endswith("layer_scalar"):
                buffer.copy_(0.9 + 0.05 * noise(buffer))
    return model.requires_grad_(False)


def drafter_config(kinds: list[str], taps: list[int], num_target_layers: int, **changes: Any) -> dict[str, Any]:
    """The config of a z-lab drafter beside the targets above; ``changes`` go to the top level."""
    return {
        "architectures": ["DFlashDraftModel"],
        "model_type": "qwen3",
        "hidden_size": 64,
        "intermediate_size": 80,
        "num_hidden_layers": len(kinds),
        "layer_types": kinds,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "sliding_window": DRAFT_WINDOW,
        "use_sliding_window": True,
        "rope_theta": 1e6,
        "rope_scaling": None,
        "block_size": 16,
        "num_target_layers": num_target_layers,
        "final_logit_softcapping": 30.0,
        "vocab_size": VOCAB_SIZE,
        "dflash_config": {"mask_token_id": 4, "target_layer_ids": taps},
        **changes,
    }


SECOND = {"conv_kernel_size": 2, "conv_group_size": 16, "selector_rank": 32, "selector_top_k": 16}
"""What ``dflash_config`` says of a DFlash 2."""


def second_config(taps: list[int], num_target_layers: int, **changes: Any) -> dict[str, Any]:
    """The config of a DFlash 2, whose layers all have windows and see their whole block."""
    config = drafter_config([SLIDING, SLIDING], taps, num_target_layers, block_size=8, is_causal=False, **changes)
    return {**config, "architectures": ["DFlash2DraftModel"], "dflash_config": {**config["dflash_config"], **SECOND}}


def dspark_config(kinds: list[str], taps: list[int], num_target_layers: int, **changes: Any) -> dict[str, Any]:
    """The config of a DSpark drafter as SpecForge writes it, whose rows all draft; ``changes`` go to what it says of
    its head, or to the top level."""
    head = {
        "projector_type": "dspark",
        "attention_mode": "gqa",
        "markov_rank": 32,
        "markov_head_type": "vanilla",
        "confidence_head_alpha": 1.0,
        "enable_confidence_head": True,
        "confidence_head_with_markov": True,
    }
    own = {name: changes.pop(name) for name in list(changes) if name in head or name == "shift_label"}
    rest = {"block_size": 7, "final_logit_softcapping": None, "vocab_size": VOCAB_SIZE, **changes}
    config = drafter_config(kinds, taps, num_target_layers, **rest)
    return {
        **config,
        "architectures": ["DSparkDraftModel"],
        "dflash_config": {**config["dflash_config"], **head, **own},
    }


def head_shapes(hidden: int, vocabulary: int, drafted: int, head: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the tensors of a DSpark drafter's head."""
    rank = head["markov_rank"]
    shapes: dict[str, tuple[int, ...]] = {
        "markov_head.markov_w1.weight": (vocabulary, rank),
        "markov_head.markov_w2.weight": (drafted, rank),
    }
    if head["markov_head_type"] == "gated":
        shapes |= {"markov_head.gate_proj.weight": (rank, hidden + rank), "markov_head.gate_proj.bias": (rank,)}
    if head["enable_confidence_head"]:
        read = hidden + (rank if head["confidence_head_with_markov"] else 0)
        shapes |= {"confidence_head.proj.weight": (1, read), "confidence_head.proj.bias": (1,)}
    return shapes


def dspine_config(kinds: list[str], taps: list[int], num_target_layers: int, **changes: Any) -> dict[str, Any]:
    """The config of a DSpine drafter as SpecForge writes it, with ranks that are no powers of two."""
    own = {"transfer_rank": 40, "message_size": 24, "top_k": 16, "ce_weight": 0.1}
    rest = {"block_size": 16, "final_logit_softcapping": None, **changes}
    config = drafter_config(kinds, taps, num_target_layers, **rest)
    return {**config, "architectures": ["DSpineDraftModel"], "dspine_config": own}


def injection_shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Names and shapes of what a DSpine drafter has beside its layers, except its codes."""
    hidden, rank, message = config["hidden_size"], *list(config["dspine_config"].values())[:2]
    shapes: dict[str, tuple[int, ...]] = {"injection.bias": (message,)}
    shapes |= {f"injection.{name}.weight": (message, rank) for name in ("message", "receiver_gate", "predecessor_gate")}
    for index in range(config["num_hidden_layers"]):
        shapes |= {f"injection.readouts.{index}.weight": (rank, hidden)}
        shapes |= {f"injection.writes.{index}.weight": (hidden, message)}
    return shapes


def drafter_weights(config: dict[str, Any], seed: int) -> dict[str, Tensor]:
    """Random tensors under the names and shapes of a published drafter. The final norm's have either sign, as in the
    targets, or every draft would be the mask's own embedding found again."""
    hidden, inter, head_dim = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    q_size, kv_size = config["num_attention_heads"] * head_dim, config["num_key_value_heads"] * head_dim
    shapes: dict[str, tuple[int, ...]] = {
        "fc.weight": (hidden, len(config["dflash_config"]["target_layer_ids"]) * hidden),
        "hidden_norm.weight": (hidden,),
        "norm.weight": (hidden,),
    }
    for index in range(config["num_hidden_layers"]):
        layer = {
            "input_layernorm": (hidden,),
            "post_attention_layernorm": (hidden,),
            "self_attn.q_proj": (q_size, hidden),
            "self_attn.k_proj": (kv_size, hidden),
            "self_attn.v_proj": (kv_size, hidden),
            "self_attn.o_proj": (hidden, q_size),
            "self_attn.q_norm": (head_dim,),
            "self_attn.k_norm": (head_dim,),
            "mlp.gate_proj": (inter, hidden),
            "mlp.up_proj": (inter, hidden),
            "mlp.down_proj": (hidden, inter),
        }
        shapes |= {f"layers.{index}.{name}.weight": shape for name, shape in layer.items()}
        if config.get("attention_bias"):
            projections = (f"self_attn.{each}_proj" for each in "qkvo")
            shapes |= {f"layers.{index}.{name}.bias": layer[name][:1] for name in projections}
    second = config["dflash_config"]
    if "conv_group_size" in second:
        taps, rank = second["conv_kernel_size"], second["selector_rank"]
        columns = 2 * taps * (hidden // second["conv_group_size"])
        for index in range(config["num_hidden_layers"]):
            for conv in ("attention_conv", "mlp_conv"):
                shapes[f"layers.{index}.{conv}.base_kernel"] = (2, taps, hidden)
                shapes[f"layers.{index}.{conv}.kernel_projection.weight"] = (columns, hidden)
        shapes["candidate_selector.hidden_projection.weight"] = (rank, hidden)
        for book in ("predecessor_codebook", "successor_codebook"):
            shapes[f"candidate_selector.{book}"] = (config["vocab_size"], rank)
    if "markov_rank" in second:
        shapes |= head_shapes(hidden, config["vocab_size"], config["vocab_size"], second)
    if "dspine_config" in config:
        shapes |= injection_shapes(config)
    generator = torch.Generator().manual_seed(seed)
    noise = {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    scales = {name for name, x in noise.items() if x.dim() == 1 and not name.endswith(".bias")}
    weights = {name: 1 + 0.25 * x if name in scales else 0.15 * x for name, x in noise.items()}
    weights |= {name: 3 * x for name, x in weights.items() if "selector" in name or "markov_w" in name}
    weights |= {name: 0.25 * x for name, x in weights.items() if "kernel_projection" in name}
    weights |= {name: 0.5 + x for name, x in weights.items() if "base_kernel" in name}
    return weights | {"norm.weight": 2 * noise["norm.weight"]}


def write_drafter(folder: Path, config: dict[str, Any], seed: int = 0) -> dict[str, Tensor]:
    """Saves a random drafter; returns its weights."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = drafter_weights(config, seed)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return weights


def write_tokenizer(folder: Path) -> None:
    """Gemma's special ids, the printable characters, some merges, and 256 byte tokens: every text can be spelled."""
    if not (folder / "config.json").exists():
        (folder / "config.json").write_text('{"model_type": "gemma4_text"}')
    save_tokenizer(train_tokenizer([SAMPLE_TEXT] * 3, VOCAB_SIZE), folder, max_positions=4096)
