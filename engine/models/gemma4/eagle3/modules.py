"""An EAGLE-3 whose layer is Gemma 4's own, over pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....kv_cache.cache import Cache
from ....layer_config import AttentionConfig
from ...drafter import DraftBinding
from ...eagle3.config import Eagle3Config
from ...eagle3.modules import Eagle3
from ...layers import RMSNorm, linear
from ...target import TargetModel
from ..modules import Gemma4Attention, Gemma4DecoderLayer, embedding_scale

if TYPE_CHECKING:
    from .draft_pass import GemmaEagle3DraftPass


class PairAttention(Gemma4Attention):
    """Attention whose queries and keys are of pairs, twice as wide as what comes out."""

    def __init__(self, layer: AttentionConfig, config: Eagle3Config):
        super().__init__(layer, 2 * config.hidden_size, config.rms_norm_eps)
        self.o_proj = linear(layer.num_heads * layer.head_dim, config.hidden_size)


class GemmaEagleLayer(Gemma4DecoderLayer):
    self_attn: PairAttention

    def __init__(self, config: Eagle3Config, layer: AttentionConfig):
        super().__init__(config, layer)
        self.self_attn = PairAttention(layer, config)
        self.hidden_norm = RMSNorm(config.hidden_size, config.rms_norm_eps)


class GemmaEagle3(Eagle3):
    """DeepSpec's EAGLE-3 for Gemma 4."""

    branch_ends = ("post_attention_layernorm.weight", "post_feedforward_layernorm.weight")

    def _first_layer(self, layer: AttentionConfig) -> GemmaEagleLayer:
        return GemmaEagleLayer(self.config, layer)

    def prepare(self) -> None:
        super().prepare()
        if self.config.tables.embedding:  # of others the scale goes with the norm, which here is no matter of course
            self.embed_tokens.weight.mul_(embedding_scale(self.config.hidden_size))

    def draft_pass(self, target: TargetModel, cache: Cache, bound: DraftBinding) -> GemmaEagle3DraftPass:
        from . import draft_pass

        return draft_pass.GemmaEagle3DraftPass(self, target, cache, bound)
