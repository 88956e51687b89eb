"""Reads the config of a DSpark, or a DFlash, whose layers are Gemma 4's own: DeepSpec's, on a copy of the target's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from ....files.json_fields import Fields
from ....layer_config import Activation, AttentionConfig
from ...dflash.config import DFlashConfig
from ...dflash.dspark import read_flat
from ...family import Json
from ..config import read_drafters_layers

if TYPE_CHECKING:
    from .modules import GemmaDSpark


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmaDSparkConfig(DFlashConfig):
    """Its layers have norms behind both branches, values that are their keys, and a scalar."""

    norm_style: ClassVar[Literal["gemma", "qwen"]] = "gemma"
    activation: ClassVar[Activation] = "gelu_tanh"
    moe: ClassVar[None] = None

    @staticmethod
    def read_layers(merged: Fields) -> tuple[AttentionConfig, ...]:
        return tuple(replace(layer, causal=False) for layer in read_drafters_layers(merged))

    def build(self) -> GemmaDSpark:
        from .modules import GemmaDSpark

        return GemmaDSpark(self)


def read_gemma_dspark(config: Json) -> GemmaDSparkConfig:
    """It sees its whole block, scales embeddings as its target does, and brings its tables. Raises ``WeightsFailure``
    for a damaged config, and for what is not computed."""
    return replace(read_flat(dict(config), GemmaDSparkConfig), leftovers=())
