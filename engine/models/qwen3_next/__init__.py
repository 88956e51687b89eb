"""Qwen3-Next: ``Qwen/Qwen3-Coder-Next``. Its layers are those of ``qwen3_5_moe``, stored otherwise."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ..family import ChatFormat, Family, KnownPair
from ..pre_norm.names import tensor_name
from ..qwen3_5.config import read_qwen3_5
from ..qwen3_5_moe import QWEN3_5_MOE

QWEN3_NEXT = Family(
    name="Qwen3-Next",
    model_types=("qwen3_next",),
    read_config=partial(read_qwen3_5, experts=True, fused=True),
    tensor_name=tensor_name,
    skipped_tensors={"mtp.": "MTP", "lm_head.": ""},
    expert_tensors=QWEN3_5_MOE.expert_tensors,
    chat=ChatFormat(
        Path(__file__).parents[1] / "qwen3_moe" / "chat_template.jinja",
        "<think>",
        "</think>",
        lines_behind_thought=True,
    ),
    pairs=(KnownPair("Qwen/Qwen3-Coder-Next", "z-lab/Qwen3-Coder-Next-DFlash", 2048, 48, 80_148_386_560),),
)
