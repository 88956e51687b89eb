"""Reads and writes the pair on disk, laid out as published checkpoints are."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from ....hub.pairs import BUNDLED_PAIR
from ....loading import checkpoint
from ....models.dflash.modules import DFlashDrafter
from ....models.target import TargetModel
from ...training.pipeline import save_weights
from .shapes import BOS, PAD, STOP_IDS
from .target_model import TrainableTarget
from .tokenizer import save_tokenizer

PAIR = BUNDLED_PAIR
TARGET_PREFIX = "model.language_model."
ABOUT = "about.json"
"""What the pair says of itself: written by hand, after what its report shows."""


def save_target(model: TrainableTarget, tokenizer: Tokenizer, pair: Path) -> None:
    folder = pair / "target"
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(folder / "config.json", model.shape.to_config())
    generation = {"bos_token_id": BOS, "do_sample": False, "eos_token_id": list(STOP_IDS), "pad_token_id": PAD}
    _write_json(folder / "generation_config.json", generation)
    if not (pair / ABOUT).exists():
        shutil.copyfile(PAIR / ABOUT, pair / ABOUT)
    save_tokenizer(tokenizer, folder, model.shape.max_positions)
    save_weights(model, folder, TARGET_PREFIX)


def load_target(pair: Path, device: torch.device) -> TargetModel:
    """The target as the engine loads it: in float32 on a CPU, in bfloat16 on a GPU."""
    return checkpoint.load_target(pair / "target", device, lambda *_: None)


def load_drafter(pair: Path, target: TargetModel) -> DFlashDrafter:
    """The drafter that lies beside the target."""
    drafter = checkpoint.load_drafter(pair / "drafter", target, lambda *_: None)
    assert isinstance(drafter, DFlashDrafter)
    return drafter


def _write_json(path: Path, data: dict[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
