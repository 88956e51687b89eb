"""Decides, in one place, in which of the published formats a drafter comes, by its ``config.json``. What is read
without being understood drafts half of what it should, and no text shows it; so whatever is not decided here is refused
by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from ..errors import Option, WeightsFailure
from ..files.json_fields import Fields
from .dflash.config import DFlashConfig
from .dflash.dspark import read_deepspec, read_specforge
from .dflash.dspine import read_dspine
from .dflash.speculators import read_speculators
from .eagle3.config import read_deepspec_eagle3, read_eagle3, read_speculators_eagle3
from .family import DrafterConfig, Json
from .gemma4.dspark.config import read_gemma_dspark
from .gemma4.eagle3.config import read_gemma_eagle3
from .gemma4.mtp.config import MtpConfig

Reader = Callable[[Json], DrafterConfig]

BY_ARCHITECTURE: dict[str, Reader] = {
    "DFlashDraftModel": DFlashConfig.from_json,
    "DFlash2DraftModel": DFlashConfig.second_from_json,
    "Qwen3DSparkModel": read_deepspec,
    "Gemma4DSparkModel": read_gemma_dspark,
    "Gemma4AssistantForCausalLM": MtpConfig.from_json,
    "Gemma4UnifiedAssistantForCausalLM": MtpConfig.from_json,
    "LlamaForCausalLMEagle3": read_eagle3,
    "Qwen3Eagle3Model": read_deepspec_eagle3,
    "Gemma4Eagle3Model": read_gemma_eagle3,
}
"""Readers of formats that an architecture alone names."""
OF_SPECULATORS: dict[str, Reader] = {
    "dflash": read_speculators,
    "dflash2": read_speculators,
    "dspark": read_speculators,
    "eagle3": read_speculators_eagle3,
}
"""Readers of the speculators format, by its type."""

DSPARK = "a DSpark drafter whose layers are not Qwen3's"
DOMINO = "a Domino drafter, whose guesses go through a recurrent head"
LILICORR = "a LiLiCorr drafter, which ranks pairs of guesses with a transformer of its own"
MIXTURE = "a drafter whose layers are mixtures of experts"
SPECULATORS = {
    "peagle": "a P-EAGLE drafter, an EAGLE-3 that drafts all its tokens in one pass",
    "xpress": "an XPress drafter, which refines its block in several passes",
    "mtp": "a copy of a target's own MTP layers in the speculators format",
    "medusa": "a set of Medusa heads",
    "dfly": "a DFly drafter",
}
"""Types of the speculators format (``speculators_model_type``) that are not read, with words for people."""
OTHER_ARCHITECTURES = {
    "LiLiCorrDraftModel": LILICORR,
    "Lfm2DSparkDraftModel": f"{DSPARK}: it turns neighbours in a head, not halves",
    "DFlashLagunaForCausalLM": "a DFlash with fused projections and gates (Laguna)",
}
SLOTS = {"sample_from_anchor": False, "query_zero_predicts_next": False, "shift_label": False, "logits_start": 1}
"""Fields that say whether a block's first row, that of the anchor, drafts too, so that all guesses stand one place
further left; with the values by which it doesn't."""


def drafter_reader(config: Json) -> Reader | None:
    """What reads the drafter with this ``config.json``; None where it is none that is known. Raises ``WeightsFailure``
    for formats that are known and not read, and for switches within one that would move its guesses."""
    inner = config.get("dflash_config")
    both: dict[str, Any] = {**config, **(inner if isinstance(inner, Mapping) else {})}
    architecture = _architecture(config)
    if (kind := config.get("speculators_model_type")) is not None:
        if isinstance(kind, str) and kind in SPECULATORS:
            _refuse(SPECULATORS[kind])
        if config.get("draft_ffn_type") == "moe":
            _refuse(MIXTURE)
        fields = Fields(config, "the drafter's config.json")
        return OF_SPECULATORS[fields.text("speculators_model_type", tuple(OF_SPECULATORS))]
    if any(name.startswith("dspark_") for name in config):
        _refuse("a drafter inside of a target's own file (dspark_*)")
    if (projector := both.get("projector_type")) == "domino":
        _refuse(DOMINO)
    if any(name.startswith("lilicorr_") for name in both):
        _refuse(LILICORR)
    if is_dspine(config):
        _require_slots(both)
        return read_dspine
    if architecture in OTHER_ARCHITECTURES:
        _refuse(OTHER_ARCHITECTURES[architecture])
    if projector == "dspark" or architecture == "DSparkDraftModel":
        return read_specforge
    if "markov_rank" in config and architecture != "Gemma4DSparkModel":
        return read_deepspec
    if "eagle_config" in config:
        return read_eagle3
    if architecture is None or architecture not in BY_ARCHITECTURE:
        return None
    if architecture.startswith("DFlash"):
        _require_slots(both)
        if architecture == "DFlashDraftModel" and both.get("selector_rank"):
            return DFlashConfig.second_from_json
    return BY_ARCHITECTURE[architecture]


def is_dspine(config: Json) -> bool:
    """Whether this is the ``config.json`` of a DSpine drafter, whose weights may lie in a second file."""
    return "dspine_config" in config or _architecture(config) == "DSpineDraftModel"


def _architecture(config: Json) -> str | None:
    """The only architecture that a config names; some tools repeat it, or write a word."""
    given = config.get("architectures")
    named = given if isinstance(given, list) else [given]
    first = named[0] if named and named.count(named[0]) == len(named) else None
    return first if isinstance(first, str) else None


def _require_slots(both: Json) -> None:
    """Raises ``WeightsFailure`` for a block whose first row drafts."""
    for name, silent in SLOTS.items():
        if (value := both.get(name)) is not None and value != silent:
            _refuse(f"one whose first row drafts, too ({name} is {value})")


def _refuse(what: str) -> NoReturn:
    raise WeightsFailure(
        f"This drafter is {what}, which the engine lacks.",
        ("Name the target's DFlash drafter with ", Option("drafter"), ", or leave the flag out."),
    )
