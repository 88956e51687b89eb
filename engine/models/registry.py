"""Finds the family of a checkpoint. A family is a folder here and a place in ``FAMILIES``. No torch is needed."""

from __future__ import annotations

from collections.abc import Mapping

from ..commands import METHODS
from ..errors import Load, Option, WeightsFailure
from ..files.json_fields import Fields
from .drafter_formats import drafter_reader
from .family import DrafterConfig, Family, Json
from .gemma4 import GEMMA4
from .gpt_oss import GPT_OSS
from .llama import LLAMA
from .qwen3 import QWEN3
from .qwen3_5 import QWEN3_5
from .qwen3_5_moe import QWEN3_5_MOE
from .qwen3_moe import QWEN3_MOE
from .qwen3_next import QWEN3_NEXT
from .unread_fields import OF_TARGETS, refuse_unread

FAMILIES: list[Family] = [GEMMA4, LLAMA, QWEN3, QWEN3_5, QWEN3_5_MOE, QWEN3_MOE, QWEN3_NEXT, GPT_OSS]


def register(family: Family) -> None:
    """Adds a family that lies outside of this package."""
    FAMILIES.append(family)


def find_family(config: Json) -> Family | None:
    """The family of the checkpoint with this ``config.json``; None if it is none of ``FAMILIES``."""
    model_type = text_config(config).get("model_type")
    return next((family for family in FAMILIES if model_type in family.model_types), None)


def _called(name: object) -> str:
    """What a config says the model is, as words for a sentence."""
    names = name if isinstance(name, list) else [name]
    listed = " and ".join(str(each) for each in names if each)
    return f"a {listed!r} model" if listed else "of no kind that its config.json would name"


def family_of(config: Json) -> Family:
    """The family of the checkpoint with this ``config.json``; raises ``WeightsFailure`` where there is none."""
    family = find_family(config)
    if family is None:
        known = "; ".join(f"{each.name} ({' or '.join(each.model_types)})" for each in FAMILIES)
        raise WeightsFailure(
            f"This checkpoint is {_called(text_config(config).get('model_type'))}; the engine runs {known}.",
            (
                f"Name a {', '.join(each.name for each in FAMILIES[:-1])} or {FAMILIES[-1].name} checkpoint, or run ",
                Load(),
                " without a model for the bundled pair.",
            ),
        )
    refuse_unread(Fields(text_config(config), "config.json"), OF_TARGETS)
    return family


def drafter_config_of(config: Json) -> DrafterConfig:
    """Reads a drafter's ``config.json``, or that of a target with a drafter of its own; raises ``WeightsFailure`` for
    another architecture."""
    if (reader := drafter_reader(config)) is not None:
        return reader(config)
    if (own := own_drafter_of(config)) is not None:
        return own
    raise WeightsFailure(
        f"This drafter is {_called(config.get('architectures'))}; the engine reads {', '.join(METHODS.values())}.",
        ("Name a DFlash drafter with ", Option("drafter"), ", for example z-lab/gemma-4-26B-A4B-it-DFlash."),
    )


def own_drafter_of(config: Json) -> DrafterConfig | None:
    """What a target's ``config.json`` says of the drafter among its own tensors; None where there is none."""
    family = find_family(config)
    return None if family is None or family.own_drafter is None else family.own_drafter(config)


def text_config(config: Json) -> Json:
    """The part of a ``config.json`` that describes the text model: all of it, unless there are parts for others beside
    it."""
    text = config.get("text_config", config)
    return text if isinstance(text, Mapping) else {}
