"""The pair on disk, laid out as published checkpoints are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor, nn

from .drafter_model import DrafterModel
from .shapes import BOS, PAD, STOP_IDS, DrafterShape, TargetShape
from .target_model import TargetModel
from .tokenizer import save_tokenizer

PAIR = Path(__file__).parent / "pair"
TARGET_PREFIX = "model.language_model."

ABOUT = {
    "name": "dflash-demo",
    "banner": (
        "A tiny demo model (about 7 million parameters). It knows eight topics: small Python programs, single-file "
        "HTML animations, changes to both, edits of a short file you give it, arithmetic word problems, short "
        "explanations of this program and of basic computing, small talk, and saying when it doesn't know."
    ),
}


def save_target(model: TargetModel, tokenizer: Tokenizer, pair: Path) -> None:
    folder = pair / "target"
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(folder / "config.json", model.shape.to_config())
    generation = {"bos_token_id": BOS, "do_sample": False, "eos_token_id": list(STOP_IDS), "pad_token_id": PAD}
    _write_json(folder / "generation_config.json", generation)
    _write_json(pair / "about.json", ABOUT)
    save_tokenizer(tokenizer, folder, model.shape.max_positions)
    _save_weights(model, folder, TARGET_PREFIX)


def save_drafter(model: DrafterModel, target: TargetShape, pair: Path) -> None:
    folder = pair / "drafter"
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(folder / "config.json", model.shape.to_config(target))
    _save_weights(model, folder, "")


def load_target(pair: Path, device: torch.device) -> TargetModel:
    """The target in float32, from its bfloat16 weights."""
    shape = TargetShape.from_config(json.loads((pair / "target" / "config.json").read_text()))
    model = TargetModel(shape)
    model.load_state_dict(_weights(pair / "target", TARGET_PREFIX))
    return model.eval().requires_grad_(False).to(device)


def load_drafter(pair: Path, device: torch.device) -> DrafterModel:
    """The drafter in float32, from its bfloat16 weights."""
    shape = DrafterShape.from_config(json.loads((pair / "drafter" / "config.json").read_text()))
    model = DrafterModel(shape)
    model.load_state_dict(_weights(pair / "drafter", ""))
    return model.eval().requires_grad_(False).to(device)


def _save_weights(model: nn.Module, folder: Path, prefix: str) -> None:
    tensors = {
        prefix + name: tensor.detach().to("cpu", torch.bfloat16).contiguous()
        for name, tensor in sorted(model.state_dict().items())
    }
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def _weights(folder: Path, prefix: str) -> dict[str, Tensor]:
    tensors = load_file(folder / "model.safetensors")
    return {name.removeprefix(prefix): tensor.float() for name, tensor in tensors.items()}


def _write_json(path: Path, data: dict[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
