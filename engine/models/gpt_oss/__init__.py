"""gpt-oss: ``openai/gpt-oss-20b`` and ``openai/gpt-oss-120b``, whose experts are published in MXFP4."""

from __future__ import annotations

from pathlib import Path

from ..family import ChatFormat, Efforts, Family, Headers, KnownPair, PackedCopy
from .config import read_gpt_oss
from .names import tensor_name

GPT_OSS = Family(
    name="gpt-oss",
    model_types=("gpt_oss",),
    read_config=read_gpt_oss,
    tensor_name=tensor_name,
    skipped_tensors={"lm_head.": ""},  # where it is the tied embedding again
    published_in=("mxfp4",),
    transposed=("experts.gate_up_proj", "experts.down_proj"),
    chat=ChatFormat(
        Path(__file__).with_name("chat_template.jinja"),
        thought_open="<|channel|>",
        thought_close="<|end|>",
        headers=Headers("<|start|>assistant", end="<|message|>", thought="analysis", answer="final"),
        efforts=Efforts("low", "medium"),
    ),
    pairs=(
        KnownPair(
            "openai/gpt-oss-20b",
            "z-lab/gpt-oss-20b-DFlash",
            2880,
            24,
            21_699_524_288,
            copies=(PackedCopy("openai/gpt-oss-20b", "mxfp4", 13_761_264_768),),
        ),
        KnownPair(
            "openai/gpt-oss-120b",
            "z-lab/gpt-oss-120b-DFlash",
            2880,
            36,
            117_613_923_776,
            copies=(PackedCopy("openai/gpt-oss-120b", "mxfp4", 65_248_815_744),),
        ),
    ),
)
