"""An EAGLE-3 whose layer is Gemma 4's own as kernel launches; ``modules.GemmaEagle3`` defines it."""

from __future__ import annotations

from typing import cast

from ....kernels.decode.norm import after_attention, after_feed_forward
from ....kernels.shared.heads import HeadNorms
from ....kv_cache.cache import Cache
from ...drafter import DraftBinding
from ...eagle3.draft_pass import Eagle3DraftPass, EagleKernelLayer
from ...pre_norm.modules import PreNormAttention
from ...target import TargetModel
from ..kernel_layers import head_norms_of, joins_of
from ..modules import Gemma4Attention
from .modules import GemmaEagle3, GemmaEagleLayer


class GemmaEagle3DraftPass(Eagle3DraftPass):
    """Ingestion and drafting, bound to one cache and to the tensors that say which rows run."""

    def __init__(self, drafter: GemmaEagle3, target: TargetModel, cache: Cache, bound: DraftBinding):
        super().__init__(drafter, target, cache, bound)
        self._joins = joins_of(cast(GemmaEagleLayer, drafter.layers[0]), drafter.norm.weight)

    def _head_norms(self, attention: PreNormAttention | Gemma4Attention) -> HeadNorms:
        return head_norms_of(cast(Gemma4Attention, attention))

    def _behind_attention(self, layer: EagleKernelLayer, max_rows: int) -> None:
        after_attention(self._attended, self._x, self._joins[0], self._eps, self._normed, max_rows=max_rows)

    def _behind_feed_forward(self, layer: EagleKernelLayer, max_rows: int) -> None:
        after_feed_forward(self._fed, None, self._x, self._joins[1], self._eps, self._normed, max_rows=max_rows)
