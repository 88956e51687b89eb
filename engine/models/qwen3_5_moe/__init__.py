"""Qwen3.5 and 3.6 with experts: ``Qwen/Qwen3.5-35B-A3B``. Its layers are those of ``qwen3_5``."""

from __future__ import annotations

from functools import partial

from ..family import SEPARATE_EXPERTS, Family, KnownPair
from ..qwen3_5 import QWEN3_5
from ..qwen3_5.config import read_qwen3_5
from ..qwen3_5.mtp.config import read_mtp

QWEN3_5_MOE = Family(
    name="Qwen3.5-MoE",
    model_types=("qwen3_5_moe_text", "qwen3_5_moe"),
    read_config=partial(read_qwen3_5, experts=True),
    tensor_name=QWEN3_5.tensor_name,
    skipped_tensors=QWEN3_5.skipped_tensors,
    expert_tensors=SEPARATE_EXPERTS,
    own_drafter=partial(read_mtp, experts=True),
    chat=QWEN3_5.chat,
    pairs=(
        KnownPair("Qwen/Qwen3.6-35B-A3B", "z-lab/Qwen3.6-35B-A3B-DFlash", 2048, 40, 35_046_516_864),
        KnownPair("Qwen/Qwen3.5-35B-A3B", "z-lab/Qwen3.5-35B-A3B-DFlash", 2048, 40, 35_046_516_864),
        KnownPair("Qwen/Qwen3.5-122B-A10B", "z-lab/Qwen3.5-122B-A10B-DFlash", 3072, 48, 122_885_420_544),
    ),
)
