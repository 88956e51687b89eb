"""A DSpark whose layers are Gemma 4's own as kernel launches; ``modules.GemmaDSpark`` defines it."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

from ....kernels.decode.attention.rope import norm_rope_store
from ....kernels.decode.norm import after_attention, after_feed_forward
from ....kv_cache.cache import Cache
from ...dflash.draft_pass import DFlashDraftPass, DraftKernels
from ...drafter import DraftBinding
from ...target import TargetModel
from ..kernel_layers import joins_of
from ..modules import Gemma4DecoderLayer
from .modules import GemmaDSpark


class GemmaDSparkPass(DFlashDraftPass):
    """Ingestion and drafting, bound to one cache and to the tensors that say which rows run."""

    def __init__(self, drafter: GemmaDSpark, target: TargetModel, cache: Cache, bound: DraftBinding):
        super().__init__(drafter, target, cache, bound)
        modules = [cast(Gemma4DecoderLayer, module) for module in drafter.layers]
        next_norms = [*(module.input_layernorm.weight for module in modules[1:]), drafter.norm.weight]
        self._joins = [joins_of(module, norm) for module, norm in zip(modules, next_norms, strict=True)]
        self._eps = drafter.config.rms_norm_eps

    def _context_stores(self, cache: Cache) -> None:
        """None: each layer is stored by itself."""

    def _store_context(self, start: Tensor, count: Tensor) -> None:
        widths = [each.config.qkv_columns - each.config.num_heads * each.config.head_dim for each in self._layers]
        columns = torch.split(self._buffers.context_kv, widths, dim=1)
        for layer, projected in zip(self._layers, columns, strict=True):
            norm_rope_store(
                projected, layer.head_norms, self._drafter.frequencies, layer.cache.k, layer.cache.v, start, count,
                value_is_key=layer.config.value_is_key,
            )  # fmt: skip

    def _behind_attention(self, index: int, layer: DraftKernels) -> None:
        buffers = self._buffers
        after_attention(buffers.output, buffers.x, self._joins[index][0], self._eps, buffers.normed)

    def _behind_feed_forward(self, index: int, next_norm: Tensor) -> None:
        buffers = self._buffers
        after_feed_forward(buffers.down, None, buffers.x, self._joins[index][1], self._eps, buffers.normed)
