"""Decides, in one place, in which of the published formats a drafter comes, by its ``config.json``. What is read
without being understood drafts half of what it should, and no text shows it; so whatever is not decided here is refused
by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, NoReturn

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


class Unread(NamedTuple):
    """A published format that is not read, and its signs."""

    what: str
    """Words for people."""
    name: str
    """Part of what configs call it, in small letters and without strokes."""
    fields: tuple[str, ...] = ()
    """How fields begin that only its configs have."""
    tensors: tuple[str, ...] = ()
    """Parts of names of tensors that only its files have."""


UNREAD = (
    Unread(
        "a LiLiCorr drafter, which ranks pairs of guesses with a transformer of its own",
        "lilicorr", ("lilicorr_",), ("lilicorr.",),
    ),
    Unread(
        "a Domino drafter, whose guesses go through a recurrent head",
        "domino", ("gru_hidden_dim", "pure_draft_prefix_len"), ("prefix_gru.",),
    ),
    Unread(
        "an XPress drafter, which refines its block in several passes",
        "xpress", ("xpress_", "num_jacobi_passes"), ("refiner_head.",),
    ),
    Unread(
        "a P-EAGLE drafter, an EAGLE-3 that drafts all its tokens in one pass",
        "peagle", ("pard_token",), ("mask_hidden",),
    ),
    Unread(
        "a DFlash with fused projections and gates (Laguna)",
        "dflashlaguna", (), ("self_attn.qkv_proj.", "self_attn.g_proj.", "aux_hidden_norms."),
    ),
    Unread(
        "a DSpark drafter whose layers are not Qwen3's: it turns neighbours in a head, not halves", "lfm2dspark"
    ),
    Unread("a set of Medusa heads", "medusa", ("medusa_",)),
    Unread("a DFly drafter", "dfly"),
    Unread("a copy of a target's own MTP layers in the speculators format", "speculatorsmtp"),
    Unread("one whose layers are mixtures of experts", "ffnmoe", (), (".mlp.experts.", ".mlp.gate.weight")),
)  # fmt: skip
NAMED = {"architectures": "", "speculators_model_type": "speculators", "projector_type": "", "draft_ffn_type": "ffn"}
"""Fields that name a format, and what stands before their word in ``Unread.name``."""
OF_WHOLE_FILES = ("speculators_model_type", "transformer_layer_config")
"""Fields that only the speculators format has."""
SLOTS = {"sample_from_anchor": False, "query_zero_predicts_next": False, "shift_label": False, "logits_start": 1}
"""Fields that say whether a block's first row, that of the anchor, drafts too, so that all guesses stand one place
further left; with the values by which it doesn't."""


def drafter_reader(config: Json) -> Reader | None:
    """What reads the drafter with this ``config.json``; None where it is none that is known. Raises ``WeightsFailure``
    for formats that are known and not read, and for switches within one that would move its guesses."""
    inner = config.get("dflash_config")
    both: dict[str, Any] = {**config, **(inner if isinstance(inner, Mapping) else {})}
    architecture = _architecture(config)
    _refuse_named(both | {"architectures": architecture})
    if any(config.get(name) is not None for name in OF_WHOLE_FILES):
        fields = Fields(config, "the drafter's config.json")
        return OF_SPECULATORS[fields.text("speculators_model_type", tuple(OF_SPECULATORS))]
    if any(name.startswith("dspark_") for name in config):
        _refuse("a drafter inside of a target's own file (dspark_*)")
    if is_dspine(config):
        _require_slots(both)
        return read_dspine
    if _squeezed(both.get("projector_type")) == "dspark" or architecture == "DSparkDraftModel":
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


def refuse_unread_drafter(names: Iterable[str]) -> None:
    """Raises ``WeightsFailure`` for a file's tensors of a format that is not read, whatever its config says."""
    for name in names:
        for each in UNREAD:
            if any(part in name for part in each.tensors):
                _refuse(f"{each.what} ({name})")


def _refuse_named(both: Json) -> None:
    named = [before + _squeezed(both.get(field)) for field, before in NAMED.items()]
    given = [field for field, value in both.items() if value is not None]
    for each in UNREAD:
        if any(each.name in word for word in named) or any(field.startswith(each.fields) for field in given):
            _refuse(each.what)


def _squeezed(word: object) -> str:
    """A word in small letters, without strokes; "" for anything else."""
    return word.lower().replace("-", "").replace("_", "") if isinstance(word, str) else ""


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
