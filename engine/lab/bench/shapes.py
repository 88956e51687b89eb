"""The shapes that can be measured without a checkpoint: those of the published pairs, and one that any CPU can run."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...hub.own_drafters import OWN_DRAFTERS
from ...loading.checkpoint import read_drafter_config, read_target_config
from ...models.family import DrafterConfig, DrafterKind, TargetConfig
from ...models.registry import drafter_config_of, family_of

CONFIGS = Path(__file__).parent / "configs"
PUBLISHED = {
    "26B-A4B": ("gemma-4-26B-A4B-it", "gemma-4-26B-A4B-it-DFlash"),
    "31B": ("gemma-4-31B-it", "gemma-4-31B-it-DFlash"),
    "12B": ("gemma-4-12B-it", "gemma4-12B-it-DFlash"),
    "SmolLM2-135M": ("SmolLM2-135M-Instruct", "SmolLM2-135M-Instruct-DFlash"),
    "Llama-3.1-8B": ("Llama-3.1-8B-Instruct", "LLaMA3.1-8B-Instruct-DFlash-UltraChat"),
    "Qwen3-4B": ("Qwen3-4B", "Qwen3-4B-DFlash-b16"),
    "Qwen3-8B": ("Qwen3-8B", "Qwen3-8B-DFlash-b16"),
    "Qwen3.5-4B": ("Qwen3.5-4B", "Qwen3.5-4B-DFlash"),
    "Qwen3.5-9B": ("Qwen3.5-9B", "Qwen3.5-9B-DFlash"),
    "Qwen3.5-27B": ("Qwen3.5-27B", "Qwen3.5-27B-DFlash"),
    "Qwen3.6-27B": ("Qwen3.6-27B", "Qwen3.6-27B-DFlash"),
    "Qwen3.8-27B": ("Qwen3.8-27B", "Qwen3.8-27B-DFlash2"),
    "Qwen3.5-35B-A3B": ("Qwen3.5-35B-A3B", "Qwen3.5-35B-A3B-DFlash"),
    "Qwen3.6-35B-A3B": ("Qwen3.6-35B-A3B", "Qwen3.6-35B-A3B-DFlash"),
    "Qwen3.5-122B-A10B": ("Qwen3.5-122B-A10B", "Qwen3.5-122B-A10B-DFlash"),
    "Qwen3-Coder-30B-A3B": ("Qwen3-Coder-30B-A3B-Instruct", "Qwen3-Coder-30B-A3B-DFlash"),
    "Qwen3-Coder-Next": ("Qwen3-Coder-Next", "Qwen3-Coder-Next-DFlash"),
    "gpt-oss-20b": ("gpt-oss-20b", "gpt-oss-20b-DFlash"),
    "gpt-oss-120b": ("gpt-oss-120b", "gpt-oss-120b-DFlash"),
}
"""Names of the config files of target and drafter. Of Llama's drafter only width, depth, block and taps are known; the
rest is like a layer of its target. Qwen3.6's target has the shape of Qwen3.5's; of drafters for Qwen3.5 the shapes and
taps are known, from a public table, and the rest is as in those for Qwen3.6."""
ASSISTANTS = {"26B-A4B": "gemma-4-26B-A4B-it-assistant", "31B": "gemma-4-31B-it-assistant"}
"""Names of the config files of MTP assistants."""
BRING_THEIR_OWN = tuple(name for name in PUBLISHED if name.startswith(("Qwen3.5", "Qwen3.6", "Qwen3.8")))
"""Targets with a layer of MTP among their own tensors."""

TINY = "tiny"
TINY_RECURRENT = "tiny-recurrent"
"""The 35B-A3B in miniature, for its MTP alone."""
SHAPES = (*PUBLISHED, TINY)
TINY_TARGET = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_global_key_value_heads": 1,
    "head_dim": 16,
    "global_head_dim": 32,
    "sliding_window": 32,
    "num_experts": 16,
    "top_k_experts": 4,
    "moe_intermediate_size": 32,
    "vocab_size": 512,
    "vocab_size_per_layer_input": 512,
}
TINY_RECURRENT_TARGET = {
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 48,
    "vocab_size": 512,
    "eos_token_id": 1,
}
TINY_DRAFTER = {
    "hidden_size": 64,
    "intermediate_size": 80,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "sliding_window": 48,
    "vocab_size": 512,
}


@dataclass(frozen=True, slots=True)
class Shape:
    """A pair's configs. Stop tokens are left out: a measured answer ends when the measurement does."""

    name: str
    target: TargetConfig
    drafter: DrafterConfig | None


def read_shape(name: str, num_layers: int | None = None, kind: DrafterKind = "dflash") -> Shape:
    """The configs of one of ``SHAPES``. ``num_layers``: takes the target's first layers alone; raises ``ValueError``
    unless these are whole periods. ``kind``: the drafter's; MTP is known for ``ASSISTANTS``, ``BRING_THEIR_OWN`` and
    what is tiny."""
    target, drafter = configs_of(name)
    if name in (TINY, TINY_RECURRENT):
        num_layers = num_layers or 2 * period_of(target)
    if num_layers is not None:
        shorten(target, drafter, num_layers)
    if kind == "mtp" and name in (*BRING_THEIR_OWN, TINY_RECURRENT):
        _text(target)["mtp_num_hidden_layers"] = 1
        drafter = target
    elif kind == "mtp":
        drafter = assistant_of(name)
    return Shape(name, without_stops(family_of(target).read_config(target, None)), drafter_config_of(drafter))


def shape_of_checkpoint(target: Path, drafter: Path | None) -> Shape:
    """The shape of a pair in folders; raises ``WeightsFailure`` for damaged configs."""
    config = read_target_config(target)
    draft_config = None if drafter is None else read_drafter_config(drafter, config)
    return Shape(target.name, without_stops(config), draft_config)


def without_stops(config: TargetConfig) -> TargetConfig:
    return replace(config, stop_token_ids=())


def configs_of(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The ``config.json`` of target and drafter of a shape; ``tiny`` is the 26B-A4B in miniature."""
    files = PUBLISHED[{TINY: "26B-A4B", TINY_RECURRENT: "Qwen3.6-35B-A3B"}.get(name, name)]
    target, drafter = (published_config(file) for file in files)
    if name == TINY_RECURRENT:
        _text(target).update(TINY_RECURRENT_TARGET)
        target["eos_token_id"] = TINY_RECURRENT_TARGET["eos_token_id"]
    if name == TINY:
        _text(target).update(TINY_TARGET)
        drafter.update(TINY_DRAFTER)
    return target, drafter


def assistant_of(name: str) -> dict[str, Any]:
    """The ``config.json`` of a shape's MTP assistant."""
    file = ASSISTANTS["26B-A4B" if name == TINY else name]
    assistant = published_config(file)
    if name == TINY:
        assistant["backbone_hidden_size"] = TINY_TARGET["hidden_size"]
        own = {key: value for key, value in TINY_TARGET.items() if "expert" not in key and "moe" not in key}
        _text(assistant).update(own | {"vocab_size_per_layer_input": 0})
    return assistant


def period_of(target: dict[str, Any]) -> int:
    """The number of layers after which the kinds of attention repeat: six in Gemma 4, five sliding and one full."""
    text = _text(target)
    kinds: list[str] = text.get("layer_types", ["full_attention"] * text["num_hidden_layers"])
    return next(n for n in range(1, len(kinds) + 1) if all(a == b for a, b in zip(kinds, kinds[n:], strict=False)))


def shorten(target: dict[str, Any], drafter: dict[str, Any], num_layers: int) -> None:
    """Cuts the configs to the target's first layers, and spreads the drafter's taps over those."""
    text, period = _text(target), period_of(target)
    if not 0 < num_layers <= text["num_hidden_layers"] or num_layers % period:
        raise ValueError(
            f"the number of layers must be a multiple of {period} up to {text['num_hidden_layers']}, not {num_layers}"
        )
    text["num_hidden_layers"] = num_layers
    if "layer_types" in text:
        text["layer_types"] = text["layer_types"][:num_layers]
    dflash: dict[str, Any] = drafter["dflash_config"]
    taps = len(dflash["target_layer_ids"])
    first, last = (1, num_layers - 3) if num_layers >= taps + 3 else (0, num_layers - 1)
    if last - first < taps - 1:
        raise ValueError(f"a drafter that reads {taps} layers needs as many, not {num_layers}")
    dflash["target_layer_ids"] = [first + i * (last - first) // (taps - 1) for i in range(taps)]
    drafter["num_target_layers"] = num_layers


def _text(target: dict[str, Any]) -> dict[str, Any]:
    """The text model's part of a target's config."""
    text_config: dict[str, Any] = target.get("text_config", target)
    return text_config


def published_config(name: str) -> dict[str, Any]:
    """A config as it was published, or as it lies beside a drafter made here."""
    file = OWN_DRAFTERS[name] / "config.json" if name in OWN_DRAFTERS else CONFIGS / f"{name}.json"
    config: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return config
