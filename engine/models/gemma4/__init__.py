"""Gemma 4: the text model of ``google/gemma-4-*``."""

from __future__ import annotations

from pathlib import Path

from ..family import SEPARATE_EXPERTS, ChatFormat, Family, GgufNames, KnownPair, PackedCopy
from .config import Gemma4Config
from .gguf_names import gguf_name

GEMMA4 = Family(
    name="Gemma 4",
    model_types=("gemma4_text", "gemma4_unified_text"),
    read_config=Gemma4Config.from_json,
    tensor_name="model.language_model.{}".format,
    skipped_tensors={
        "model.vision_tower.": "pictures",
        "model.vision_embedder.": "pictures",
        "model.embed_vision.": "pictures",
        "model.audio_tower.": "sound",
        "model.embed_audio.": "sound",
        "lm_head.": "",  # the tied embedding again
    },
    expert_tensors=SEPARATE_EXPERTS,
    gguf=GgufNames("gemma4", gguf_name),
    chat=ChatFormat(
        Path(__file__).with_name("chat_template.jinja"),
        "<|channel>",
        "<channel|>",
        shown=("<|tool_call>", "<tool_call|>", '<|"|>'),
    ),
    pairs=(
        KnownPair(
            "google/gemma-4-12B-it",
            "z-lab/gemma4-12B-it-DFlash",
            3840,
            48,
            12_634_847_280,
            (PackedCopy("google/gemma-4-12B-it-qat-w4a16-ct", "int4", 8_146_000_000),),
            "google/gemma-4-12B-it-qat-w4a16-ct",
        ),
        KnownPair(
            "google/gemma-4-26B-A4B-it",
            "z-lab/gemma-4-26B-A4B-it-DFlash",
            2816,
            30,
            25_662_830_878,
            (
                PackedCopy("RedHatAI/gemma-4-26B-A4B-it-FP8-Dynamic", "fp8", 26_050_000_000),
                PackedCopy("cyankiwi/gemma-4-26B-A4B-it-AWQ-4bit", "int4", 15_964_000_000),
            ),
            "google/gemma-4-26B-A4B-it-qat-q4_0-unquantized",
            "google/gemma-4-26B-A4B-it-assistant",
        ),
        KnownPair(
            "google/gemma-4-31B-it",
            "z-lab/gemma-4-31B-it-DFlash",
            5376,
            60,
            32_233_312_828,
            (
                PackedCopy("RedHatAI/gemma-4-31B-it-FP8-Dynamic", "fp8", 32_125_000_000),
                PackedCopy("google/gemma-4-31B-it-qat-w4a16-ct", "int4", 19_295_000_000),
            ),
            "google/gemma-4-31B-it-qat-w4a16-ct",
            "google/gemma-4-31B-it-assistant",
        ),
    ),
    refused_names=r"gemma-?4-?E[24]B",  # per-layer embeddings
)
