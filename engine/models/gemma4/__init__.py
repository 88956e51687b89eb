"""Gemma 4: the text model of ``google/gemma-4-*``."""

from __future__ import annotations

from pathlib import Path

from ..family import ChatFormat, Family, KnownPair
from .config import Gemma4Config

GEMMA4 = Family(
    name="Gemma 4",
    model_types=("gemma4_text", "gemma4_unified_text"),
    read_config=Gemma4Config.from_json,
    tensor_name="model.language_model.{}".format,
    skipped_tensors=(
        "model.vision_tower.",
        "model.vision_embedder.",
        "model.embed_vision.",
        "model.audio_tower.",
        "model.embed_audio.",
        "lm_head.",  # the tied embedding again
    ),
    chat=ChatFormat(Path(__file__).with_name("chat_template.jinja"), "<|channel>", "<channel|>"),
    pairs=(
        KnownPair("google/gemma-4-12B-it", "z-lab/gemma4-12B-it-DFlash", 3840, 48, 12_634_847_280),
        KnownPair("google/gemma-4-26B-A4B-it", "z-lab/gemma-4-26B-A4B-it-DFlash", 2816, 30, 25_662_830_878),
        KnownPair("google/gemma-4-31B-it", "z-lab/gemma-4-31B-it-DFlash", 5376, 60, 32_233_312_828),
    ),
    refused_names=r"gemma-?4-?E[24]B",  # per-layer embeddings
)
