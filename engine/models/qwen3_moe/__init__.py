"""Qwen3 with experts: ``Qwen/Qwen3-Coder-30B-A3B-Instruct``."""

from __future__ import annotations

from pathlib import Path

from ..family import ChatFormat, Family, Json, KnownPair
from ..pre_norm.config import PreNormConfig, read_pre_norm
from ..pre_norm.names import tensor_name


def _read_config(config: Json, generation: Json | None) -> PreNormConfig:
    return read_pre_norm(config, generation, head_norms=True, head_dim=128, experts=True)


QWEN3_MOE = Family(
    name="Qwen3-MoE",
    model_types=("qwen3_moe",),
    read_config=_read_config,
    tensor_name=tensor_name,
    skipped_tensors={"lm_head.": ""},
    expert_tensors={
        "experts.gate_up_proj": ("experts.{}.gate_proj.weight", "experts.{}.up_proj.weight"),
        "experts.down_proj": ("experts.{}.down_proj.weight",),
    },
    chat=ChatFormat(Path(__file__).with_name("chat_template.jinja"), "<think>", "</think>", lines_behind_thought=True),
    pairs=(
        KnownPair("Qwen/Qwen3-Coder-30B-A3B-Instruct", "z-lab/Qwen3-Coder-30B-A3B-DFlash", 2048, 48, 31_006_117_888),
    ),
)
