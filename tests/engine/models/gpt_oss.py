"""Tiny gpt-oss with random weights, in the published layout: experts in MXFP4, fields as in OpenAI's config.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import GptOssConfig, GptOssForCausalLM

from support.checkpoints import VOCAB_SIZE, randomised, write_tokenizer

WINDOW = 12
YARN = {
    "rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 256, "beta_fast": 32.0, "beta_slow": 1.0,
    "truncate": False,
}  # fmt: skip
SHAPE: dict[str, Any] = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 64,
    "intermediate_size": 32,
    "num_hidden_layers": 4,
    "num_local_experts": 8,
    "num_experts_per_tok": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "sliding_window": WINDOW,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "pad_token_id": 0,
    "eos_token_id": [1, 106],
}
PARTS = ("gate_up_proj", "down_proj")
CODES = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def random_model(seed: int = 0, **changes: Any) -> GptOssForCausalLM:
    """Experts are numbers that MXFP4 has. Some gates are large enough to be clamped."""
    rope = {**YARN, "rope_theta": 1e3}
    model = GptOssForCausalLM(GptOssConfig(**{**SHAPE, "rope_parameters": rope, **changes}))
    randomised(model, seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.sinks.copy_(2 * torch.randn(len(layer.self_attn.sinks), generator=generator))
            layer.mlp.experts.gate_up_proj_bias.mul_(40)
            for part in PARTS:
                weight = getattr(layer.mlp.experts, part)
                experts, depth, rows = weight.shape
                codes = torch.randint(0, 16, (experts, rows, depth // 32, 32), generator=generator)
                # Smaller ones lead back, or features would be so large that fp32 rounds them by 1e-4.
                least = -6 if part == "gate_up_proj" else -8
                exponents = torch.randint(least, least + 4, (experts, rows, depth // 32, 1), generator=generator)
                weight.copy_((CODES[codes] * 2.0**exponents).flatten(-2).mT)
    return model


def packed(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Blocks and scales of numbers [experts, rows, depth] that MXFP4 has: each scale is the least that will do."""
    groups = weight.unflatten(-1, (-1, 32))
    exponents = torch.floor(torch.log2(groups.abs().amax(-1).clamp(min=2.0**-100))) - 2
    numbers = groups / torch.exp2(exponents)[..., None]
    magnitudes = (numbers.abs()[..., None] == CODES[:8]).int().argmax(-1)
    codes = (magnitudes + 8 * (numbers < 0)).to(torch.uint8)
    assert torch.equal(CODES[codes.int()], numbers), "not all of these numbers are in MXFP4"
    return codes[..., ::2] | codes[..., 1::2] << 4, (exponents + 127).to(torch.uint8)


def published(model: GptOssForCausalLM) -> dict[str, Tensor]:
    """Its tensors as OpenAI names and packs them."""
    tensors = {}
    for name, weight in model.state_dict().items():
        if name.endswith(PARTS):
            tensors[f"{name}_blocks"], tensors[f"{name}_scales"] = packed(weight.mT.contiguous())
        else:
            tensors[name] = weight.contiguous()
    return tensors


def write_target(folder: Path, seed: int = 0, **changes: Any) -> GptOssForCausalLM:
    """A random checkpoint, whose model is returned."""
    model = random_model(seed, **changes)
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "architectures": ["GptOssForCausalLM"],
        "model_type": "gpt_oss",
        "attention_bias": True,
        "hidden_act": "silu",
        "swiglu_limit": 7.0,
        "experts_per_token": 4,
        "rope_theta": 1e3,
        "rope_scaling": YARN,
        "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]},
        **SHAPE,
        **changes,
    }
    (folder / "config.json").write_text(json.dumps(config))
    save_file(published(model), folder / "model.safetensors", metadata={"format": "pt"})
    write_tokenizer(folder)
    (folder / "chat_template.jinja").unlink()
    return model
