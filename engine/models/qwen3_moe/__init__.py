"""Qwen3 with experts: ``Qwen/Qwen3-Coder-30B-A3B-Instruct``."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ..family import SEPARATE_EXPERTS, ChatFormat, Family, KnownPair
from ..pre_norm.config import read_pre_norm
from ..pre_norm.names import tensor_name

QWEN3_MOE = Family(
    name="Qwen3-MoE",
    model_types=("qwen3_moe",),
    read_config=partial(read_pre_norm, head_norms=True, head_dim=128, experts=True),
    tensor_name=tensor_name,
    skipped_tensors={"lm_head.": ""},
    expert_tensors=SEPARATE_EXPERTS,
    chat=ChatFormat(Path(__file__).with_name("chat_template.jinja"), "<think>", "</think>", lines_behind_thought=True),
    pairs=(
        KnownPair("Qwen/Qwen3-Coder-30B-A3B-Instruct", "z-lab/Qwen3-Coder-30B-A3B-DFlash", 2048, 48, 31_006_117_888),
    ),
)
