"""Qwen3.5, 3.6 and 3.8 without experts: decoders three of whose four layers are gated delta nets."""

from __future__ import annotations

from pathlib import Path

from ..family import ChatFormat, Family, KnownPair
from .config import read_qwen3_5
from .mtp.config import read_mtp
from .names import tensor_name

QWEN3_5 = Family(
    name="Qwen3.5",
    model_types=("qwen3_5_text", "qwen3_5"),
    read_config=read_qwen3_5,
    tensor_name=tensor_name,
    skipped_tensors={"model.visual.": "pictures", "mtp.": "MTP", "lm_head.": ""},
    own_drafter=read_mtp,
    chat=ChatFormat(Path(__file__).with_name("chat_template.jinja"), "<think>", "</think>", lines_behind_thought=True),
    pairs=(
        KnownPair("Qwen/Qwen3.5-4B", "z-lab/Qwen3.5-4B-DFlash", 2560, 32, 4_840_177_152),
        KnownPair("Qwen/Qwen3.5-9B", "z-lab/Qwen3.5-9B-DFlash", 4096, 32, 10_245_707_776),
        KnownPair("Qwen/Qwen3.6-27B", "z-lab/Qwen3.6-27B-DFlash", 5120, 64, 28_626_211_584),
        KnownPair("Qwen/Qwen3.8-27B", "z-lab/Qwen3.8-27B-DFlash2", 5120, 64, 28_820_402_944),
        KnownPair("Qwen/Qwen3.5-27B", "z-lab/Qwen3.5-27B-DFlash", 5120, 64, 29_024_680_960),
    ),
)
