"""Qwen3 without experts: ``Qwen/Qwen3-4B``, ``Qwen/Qwen3-8B``."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ..family import ChatFormat, Family, GgufNames, KnownPair
from ..pre_norm.config import read_pre_norm
from ..pre_norm.names import gguf_name, tensor_name

QWEN3 = Family(
    name="Qwen3",
    model_types=("qwen3",),
    read_config=partial(read_pre_norm, head_norms=True, head_dim=128),
    tensor_name=tensor_name,
    skipped_tensors={"lm_head.": ""},  # where it is the tied embedding again
    gguf=GgufNames("qwen3", gguf_name, unpacked=True),
    chat=ChatFormat(Path(__file__).with_name("chat_template.jinja"), "<think>", "</think>", lines_behind_thought=True),
    pairs=(
        KnownPair("Qwen/Qwen3-4B", "z-lab/Qwen3-4B-DFlash-b16", 2560, 36, 4_559_895_296),
        KnownPair("Qwen/Qwen3-8B", "z-lab/Qwen3-8B-DFlash-b16", 4096, 36, 9_239_361_792),
    ),
)
