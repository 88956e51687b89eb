"""Tiny Qwen3.5s with random weights in the published layout: the text model beside one of pictures, as ``transformers``
calls its tensors, with a head that drafts (MTP) beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import (
    PreTrainedModel,
    Qwen3_5ForCausalLM,
    Qwen3_5MoeForCausalLM,
    Qwen3_5MoeTextConfig,
    Qwen3_5TextConfig,
    Qwen3NextConfig,
    Qwen3NextForCausalLM,
)

from support.checkpoints import VOCAB_SIZE, randomised, write_tokenizer

RECURS, ATTENDS = "linear_attention", "full_attention"
KINDS = [RECURS, RECURS, RECURS, ATTENDS] * 2
ROPE = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.25, "mrope_section": [2, 1, 1]}
SHAPE: dict[str, Any] = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": len(KINDS),
    "layer_types": KINDS,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 6,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "linear_conv_kernel_dim": 4,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "attn_output_gate": True,
    "eos_token_id": 1,
}


EXPERTS = {
    "num_experts": 8,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 48,
    "shared_expert_intermediate_size": 64,
}


def random_model(seed: int = 0, experts: bool = False, fused: bool = False, **changes: Any) -> PreTrainedModel:
    """``changes`` go into the config. Some heads remember for long: what went wrong long ago still shows."""
    values = {**SHAPE, "rope_parameters": dict(ROPE), **changes}
    model: PreTrainedModel
    if fused:
        model = randomised(Qwen3NextForCausalLM(Qwen3NextConfig(**{**EXPERTS, "norm_topk_prob": True, **values})), seed)
    elif experts:
        model = randomised(Qwen3_5MoeForCausalLM(Qwen3_5MoeTextConfig(**{**EXPERTS, **values})), seed)
    else:
        model = randomised(Qwen3_5ForCausalLM(Qwen3_5TextConfig(**values)), seed)
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            drawn = torch.rand(parameter.shape, generator=generator)
            if name.endswith("A_log"):
                parameter.copy_(-4.6 + 7.3 * drawn)  # from ln 0.01 to ln 16
            elif name.endswith("dt_bias"):
                parameter.copy_(drawn)
            elif "conv1d" in name:
                parameter.copy_(drawn - 0.3)
            elif "norm" in name and "linear_attn" not in name:
                parameter.sub_(1)  # what is added to one
            if name.endswith(("in_proj_qkv.weight", "in_proj_qkvz.weight", "conv1d.weight")):
                # Keys are much like queries: where a head has just learnt and finds nothing, its norm makes a number of
                # what was a rounding, in their model as in ours.
                size, heads = model.config.linear_key_head_dim, model.config.linear_num_key_heads
                groups = parameter.view(heads, -1, *parameter.shape[1:]) if "qkvz" in name else parameter[None]
                size *= 1 if "qkvz" in name else heads
                groups[:, size : 2 * size].mul_(0.3).add_(groups[:, :size])
    return model


def write_target(
    folder: Path,
    seed: int = 0,
    alone: bool = False,
    experts: bool = False,
    fused: bool = False,
    drafts: bool = False,
    **changes: Any,
) -> Any:
    """A random checkpoint, whose model is returned. ``alone``: of the text model, as ``transformers`` saves it;
    ``drafts``: with a whole layer of MTP in the place of one that nobody reads."""
    model = random_model(seed, experts, fused, **changes)
    model.save_pretrained(folder)
    write_tokenizer(folder)
    (folder / "chat_template.jinja").unlink()
    if not alone and not fused:
        path = folder / "config.json"
        text = json.loads(path.read_text())
        tied = text.get("tie_word_embeddings", False)
        if drafts:
            text |= {"mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": False}
        kind = "qwen3_5_moe" if experts else "qwen3_5"
        whole = {"architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": kind, "text_config": text}
        path.write_text(json.dumps({**whole, "vision_config": {"depth": 1}, "tie_word_embeddings": tied}))
        (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [1, 106]}))
        beside = {_beside_pictures(name): tensor for name, tensor in saved(folder).items()} | unread()
        save(folder, beside | (mtp_tensors(seed, experts, **changes) if drafts else {}))
    return model


def mtp_tensors(seed: int, experts: bool, **changes: Any) -> dict[str, Tensor]:
    """A random layer of MTP as it is published: a layer that attends, a projection before it, and three norms."""
    one = {**changes, "num_hidden_layers": 1, "layer_types": [ATTENDS]}
    layer = {
        name.replace("model.", "mtp.", 1): part.detach()
        for name, part in random_model(seed + 70, experts, **one).named_parameters()
        if name.startswith("model.layers.") or name == "model.norm.weight"
    }
    hidden, generator = layer["mtp.norm.weight"].numel(), torch.Generator().manual_seed(seed + 71)
    norms = {
        f"mtp.pre_fc_norm_{part}.weight": 0.5 * torch.randn(hidden, generator=generator)
        for part in ("embedding", "hidden")
    }
    return {**layer, **norms, "mtp.fc.weight": torch.randn(hidden, 2 * hidden, generator=generator) / hidden**0.5}


def saved(folder: Path) -> dict[str, Tensor]:
    return load_file(folder / "model.safetensors")


def save(folder: Path, tensors: dict[str, Tensor]) -> None:
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def unread() -> dict[str, Tensor]:
    """Tensors that text doesn't need."""
    return {"model.visual.patch_embed.proj.weight": torch.zeros(4, 4), "mtp.fc.weight": torch.zeros(4, 8)}


def _beside_pictures(name: str) -> str:
    return name if name.startswith("lm_head") else name.replace("model.", "model.language_model.", 1)
