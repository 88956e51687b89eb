"""Tiny targets as others publish them in few bits, and what their weights stand for: by hand, without the engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers.models.gemma4 import Gemma4ForConditionalGeneration

PREFIX = "model.language_model."
Tensors = dict[str, Tensor]

FP8_CONFIG = {
    "quant_method": "compressed-tensors",
    "format": "float-quantized",
    "quantization_status": "compressed",
    "ignore": ["lm_head", "re:.*router", "re:.*vision_tower.*"],
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True, "dynamic": False},
            "input_activations": {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True},
        }
    },
}


def int4_config(group: int) -> dict[str, Any]:
    weights = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": group, "symmetric": True}
    return {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "quantization_status": "compressed",
        "ignore": ["lm_head", "re:.*router", "re:.*vision_tower.*"],
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": None}},
    }


def is_packed(name: str) -> bool:
    """Whether publishers pack a tensor: projections and experts, neither head nor router nor norms."""
    return "_proj" in name and name.startswith(f"{PREFIX}layers.")


def fp8(weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """E4M3 numbers, bf16 scales [..., rows, 1], and what both stand for."""
    scale = (weight.abs().amax(-1, keepdim=True) / 448).bfloat16()
    numbers = (weight / scale.float()).clamp(-448, 448).to(torch.float8_e4m3fn)
    return numbers, scale, numbers.float() * scale.float()


def int4(weight: Tensor, group: int, negative: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Whole numbers -8 to 7, bf16 scales [..., rows, groups], every third of which is negative, and what both stand
    for."""
    groups = weight.unflatten(-1, (-1, group))
    scale = groups.abs().amax(-1) / 7
    if negative:
        scale = torch.where(torch.arange(scale.numel()).reshape(scale.shape) % 3 == 0, -scale, scale)
    scale = scale.bfloat16()
    numbers = (groups / scale.float()[..., None]).round().clamp(-8, 7).to(torch.int8)
    return numbers.flatten(-2), scale, (numbers.float() * scale.float()[..., None]).flatten(-2)


def in_int32(numbers: Tensor) -> Tensor:
    """Eight neighbours in each int32, the first in the lowest bits, stored plus 8."""
    eight = (numbers.to(torch.int64) + 8).unflatten(-1, (-1, 8))
    total = sum(eight[..., place] << (4 * place) for place in range(8))
    assert isinstance(total, Tensor)
    return torch.where(total >= 2**31, total - 2**32, total).to(torch.int32)


def of_experts(name: str, weight: Tensor) -> dict[str, Tensor]:
    """A stack of experts as weights of their own: gate above up."""
    path = name.rpartition(".")[0]
    parts = {"gate_up_proj": ("gate_proj", "up_proj"), "down_proj": ("down_proj",)}[name.rpartition(".")[2]]
    return {
        f"{path}.{expert}.{part}.weight": rows.contiguous()
        for expert, matrix in enumerate(weight)
        for part, rows in zip(parts, matrix.chunk(len(parts)), strict=True)
    }


def write_packed(
    folder: Path,
    model: Gemma4ForConditionalGeneration,
    config: dict[str, Any],
    pack: Callable[[str, Tensor], tuple[Tensors, Tensor]],
    *,
    split: bool,
    keep: Callable[[str], bool] = lambda name: False,
) -> None:
    """Saves a checkpoint and makes the model what it stands for. ``pack``: tensors by the ends of their names behind
    ``.weight``, and what they stand for. ``split``: experts by themselves. ``keep``: what stays in floats."""
    model.save_pretrained(folder)
    said = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(said | {"quantization_config": config}))
    stored: Tensors = {}
    meaning: Tensors = {}
    for name, weight in load_file(folder / "model.safetensors").items():
        stacked = weight.ndim == 3
        pieces = of_experts(name, weight) if split and stacked else {name: weight}
        restored: list[Tensor] = []
        for piece, part in pieces.items():
            if is_packed(name) and not keep(name):
                tensors, stands_for = pack(piece, part.float())
                stored |= {piece + ending: tensor.contiguous() for ending, tensor in tensors.items()}
            else:
                stored[piece], stands_for = part, part.float()
            restored.append(stands_for)
        meaning[name] = torch.cat(restored).view_as(weight) if split and stacked else restored[0]
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    parameters = {name: part for name, part in model.state_dict().items() if name in meaning}
    assert parameters.keys() == meaning.keys()
    for name, part in parameters.items():
        part.copy_(meaning[name])


def as_fp8(name: str, weight: Tensor) -> tuple[Tensors, Tensor]:
    numbers, scale, meaning = fp8(weight)
    return {"": numbers, "_scale": scale}, meaning


def as_int4(group: int) -> Callable[[str, Tensor], tuple[Tensors, Tensor]]:
    def pack(name: str, weight: Tensor) -> tuple[Tensors, Tensor]:
        numbers, scale, meaning = int4(weight, group)
        tensors = {"_packed": in_int32(numbers), "_scale": scale}
        return tensors | {"_shape": torch.tensor(weight.shape)} if name.endswith(".weight") else tensors, meaning

    return pack
