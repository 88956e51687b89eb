"""A DSpark whose layers are Gemma 4's own, and see what is committed and their block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....kv_cache.cache import Cache
from ....layer_config import AttentionConfig
from ...dflash.modules import DFlashDrafter, DraftAttention
from ...drafter import DraftBinding
from ...target import TargetModel
from ..modules import Gemma4DecoderLayer
from .config import GemmaDSparkConfig

if TYPE_CHECKING:
    from .draft_pass import GemmaDSparkPass


class GemmaDraftLayer(Gemma4DecoderLayer):
    self_attn: DraftAttention  # type: ignore[assignment]  # it attends over the block, and keeps nothing of it

    def __init__(self, config: GemmaDSparkConfig, layer: AttentionConfig):
        super().__init__(config, layer)
        self.self_attn = DraftAttention(layer, config)


class GemmaDSpark(DFlashDrafter):
    """DeepSpec's DSpark, or DFlash, for Gemma 4."""

    branch_ends = ("post_attention_layernorm.weight", "post_feedforward_layernorm.weight")
    config: GemmaDSparkConfig

    def _layer(self, layer: AttentionConfig) -> GemmaDraftLayer:
        return GemmaDraftLayer(self.config, layer)

    def draft_pass(self, target: TargetModel, cache: Cache, bound: DraftBinding) -> GemmaDSparkPass:
        from . import draft_pass

        return draft_pass.GemmaDSparkPass(self, target, cache, bound)
