"""Qwen3 without experts: ``Qwen/Qwen3-4B``, ``Qwen/Qwen3-8B``."""

from __future__ import annotations

from pathlib import Path

from ..family import ChatFormat, Family, GgufNames, Json, KnownPair
from ..pre_norm.config import PreNormConfig, read_pre_norm
from ..pre_norm.names import gguf_name, tensor_name


def _read_config(config: Json, generation: Json | None) -> PreNormConfig:
    return read_pre_norm(config, generation, head_norms=True, head_dim=128)


QWEN3 = Family(
    name="Qwen3",
    model_types=("qwen3",),
    read_config=_read_config,
    tensor_name=tensor_name,
    skipped_tensors={"lm_head.": ""},  # where it is the tied embedding again
    gguf=GgufNames("qwen3", gguf_name, unpacked=True),
    chat=ChatFormat(Path(__file__).with_name("chat_template.jinja"), "<think>", "</think>", lines_behind_thought=True),
    pairs=(
        KnownPair("Qwen/Qwen3-4B", "z-lab/Qwen3-4B-DFlash-b16", 2560, 36, 4_559_895_296),
        KnownPair("Qwen/Qwen3-8B", "z-lab/Qwen3-8B-DFlash-b16", 4096, 36, 9_239_361_792),
    ),
)
