"""Reads the config of an EAGLE-3 whose layer is Gemma 4's own: DeepSpec's, on a copy of the target's config."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from ....files.json_fields import Fields
from ....layer_config import Activation, optional_number
from ...eagle3.config import WHERE, Eagle3Config, deepspec_fields, read_as
from ...family import Json, OwnTables
from ..config import read_drafters_layers

if TYPE_CHECKING:
    from .modules import GemmaEagle3


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmaEagle3Config(Eagle3Config):
    """Its layer has norms behind both branches, values that are its keys, and a scalar."""

    norm_style: Literal["gemma", "qwen"] = "gemma"

    @property
    def activation(self) -> Activation:
        return "gelu_tanh"

    def build(self) -> GemmaEagle3:
        from .modules import GemmaEagle3

        return GemmaEagle3(self)


def read_gemma_eagle3(config: Json) -> GemmaEagle3Config:
    """Raises ``WeightsFailure`` for a damaged config, and for what is not computed."""
    fields = Fields(deepspec_fields(config), WHERE)
    read = read_as(GemmaEagle3Config, fields, fields, OwnTables(), read_drafters_layers(fields))
    return replace(read, brings_head=True, logit_softcap=optional_number(fields, "final_logit_softcapping"))
