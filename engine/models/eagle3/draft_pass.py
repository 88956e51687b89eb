"""EAGLE-3 as kernel launches; ``modules.Eagle3`` defines it. Committed rows enter all at once, in the last layer as no
more than keys and values. Like in ``decode_pass``, nothing is read back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...kernels.decode.attention.attend_rows import AttendScratch, attend_rows
from ...kernels.decode.attention.rope import norm_rope_store
from ...kernels.decode.norm import add_and_norm
from ...kernels.decode.products.dense import gate_up, partial_sums, project
from ...kernels.round.pair_rows import PairNorms
from ...kernels.shared.heads import HeadNorms
from ...kernels.toolchain.jit import MAX_ROWS
from ...kernels.weights.kinds import weight_of
from ...kv_cache.cache import Cache
from ...kv_cache.layer_cache import LayerCache
from ...layer_config import AttentionConfig
from ..drafter import DraftBinding
from ..merged_weights import LayerWeights
from ..paired_pass import PairedDraftPass
from ..pre_norm.modules import PreNormAttention
from ..target import TargetModel
from .modules import Eagle3


@dataclass(frozen=True, slots=True)
class EagleKernelLayer:
    config: AttentionConfig
    cache: LayerCache
    weights: LayerWeights
    head_norms: HeadNorms
    post_norm: Tensor
    next_norm: Tensor
    """What comes behind the layer: the next one's norm, or the head's."""


class Eagle3DraftPass(PairedDraftPass):
    """Ingestion and drafting, bound to one cache and to the tensors that say which rows run."""

    def __init__(self, drafter: Eagle3, target: TargetModel, cache: Cache, bound: DraftBinding):
        """See ``Drafter.draft_pass``. Merges the drafter's weights in place."""
        config, device, dtype, first = drafter.config, bound.features.device, bound.features.dtype, drafter.first
        self._eps = config.rms_norm_eps
        scales = first.input_layernorm.weight, first.hidden_norm.weight
        norms = PairNorms(*scales, config.rms_norm_eps, rounded_first=config.norm_style == "qwen")
        super().__init__(drafter, target, cache, bound, norms, config.logit_softcap)
        self._drafter = drafter
        modules: list[Any] = [first, *drafter.further]
        next_norms = [*(layer.input_layernorm.weight for layer in drafter.further), drafter.norm.weight]
        self._fc, self._fc_bias = self._read(weight_of(drafter.fc)), drafter.fc.bias
        self._layers = [
            EagleKernelLayer(
                kind, keys, LayerWeights.of(layer.self_attn, layer.mlp, self._read), self._head_norms(layer.self_attn),
                layer.post_attention_layernorm.weight, next_norm,
            )
            for kind, keys, layer, next_norm in zip(config.layers, self._keys, modules, next_norms, strict=True)
        ]  # fmt: skip
        last = self._layers[-1]
        queries = last.config.num_heads * last.config.head_dim
        self._kv = last.weights.qkv.rows(queries, last.weights.qkv.shape[0])
        bias = last.weights.qkv_bias
        self._kv_bias = None if bias is None else bias[queries:].clone()

        def rows(width: int) -> Tensor:
            return torch.zeros(MAX_ROWS, width, dtype=dtype, device=device)

        hidden = config.hidden_size
        self._features, self._joined_rows = rows(len(config.taps) * hidden), rows(2 * hidden)
        self._hidden, self._x, self._normed = rows(hidden), rows(hidden), rows(hidden)
        self._act = rows(config.intermediate_size)
        self._mixed, self._projected = rows(queries), rows(last.weights.qkv.shape[0])
        self._new_kv = rows(self._kv.shape[0])
        self._attended = partial_sums(self.tiles.output, hidden, device)
        self._fed = partial_sums(self.tiles.down, hidden, device)
        self._scratch = AttendScratch(config.layers, [each.capacity for each in self._keys], device)

    def _joined(self, features: Tensor) -> Tensor:
        hidden = self._hidden.shape[1]
        self._features.copy_(self._drafter.normed_features(features[:, :-hidden]))
        project(self._features, self._fc, self._hidden, self.tiles.context_kv, bias=self._fc_bias)
        self._joined_rows[:, :hidden].copy_(self._hidden)
        self._joined_rows[:, hidden:].copy_(features[:, -hidden:])
        return self._joined_rows

    def _remember(self, count: Tensor) -> None:
        read, last = self._pairs, self._layers[-1]
        if len(self._layers) > 1:
            self._begin_residual()
            read = self._run(self._layers[:-1], self._first, count, MAX_ROWS)
        project(read, self._kv, self._new_kv, self.tiles.context_kv, bias=self._kv_bias)
        frequencies, cache = self._drafter.frequencies, last.cache
        norm_rope_store(
            self._new_kv, last.head_norms, frequencies, cache.k, cache.v, self._first, count,
            value_is_key=last.config.value_is_key,
        )  # fmt: skip

    def _begin_residual(self) -> None:
        """Lays what committed rows are paired with into the residual stream."""
        hidden, places = self._x.shape[1], self._first + torch.arange(MAX_ROWS, device=self._x.device)
        plain = self._hidden_rows[places % len(self._hidden_rows)]
        self._x.copy_(self._pairs[:, hidden:] if self._drafter.config.residual_normed else plain)

    @property
    def normed(self) -> Tensor:
        return self._normed

    def _residual(self) -> tuple[Tensor, bool]:
        return self._x, self._drafter.config.residual_normed

    @property
    def _before(self) -> Tensor:
        return self._normed if self._drafter.config.feeds_normed else self._x

    def _step(self, index: int) -> None:
        self._run(self._layers, self._steps.cursors[index, :1], self._steps.rows[index, :1], 1)

    def _run(self, layers: Sequence[EagleKernelLayer], cursor: Tensor, rows: Tensor, max_rows: int) -> Tensor:
        """Runs pairs through the first layers; returns the residual, normed for what comes behind them."""
        tiles, activation, read = self.tiles, self._drafter.config.activation, self._pairs
        for layer in layers:
            weights, cache = layer.weights, layer.cache
            project(read, weights.qkv, self._projected, tiles.qkv, max_rows=max_rows, bias=weights.qkv_bias)
            attend_rows(
                self._projected, layer.head_norms, self._drafter.frequencies, cache.k, cache.v, cursor, rows,
                layer.config, self._mixed, self._scratch, max_rows=max_rows,
            )  # fmt: skip
            project(self._mixed, weights.output, self._attended, tiles.output, max_rows, bias=weights.output_bias)
            self._behind_attention(layer, max_rows)
            gate_up(self._normed, weights.gate_up, self._act, activation, tiles.gate_up, max_rows=max_rows)
            project(self._act, weights.down, self._fed, tiles.down, max_rows=max_rows)
            self._behind_feed_forward(layer, max_rows)
            read = self._normed
        return read

    def _head_norms(self, attention: PreNormAttention) -> HeadNorms:
        q_norm, k_norm = (None if norm is None else norm.weight for norm in (attention.q_norm, attention.k_norm))
        return HeadNorms(q_norm, k_norm, self._eps, rounded_first=True, norm_values=False)

    def _behind_attention(self, layer: EagleKernelLayer, max_rows: int) -> None:
        """Adds to the residual stream what attention says, and norms it for what follows."""
        add_and_norm(self._attended, self._x, layer.post_norm, self._eps, self._normed, "qwen", max_rows=max_rows)

    def _behind_feed_forward(self, layer: EagleKernelLayer, max_rows: int) -> None:
        add_and_norm(self._fed, self._x, layer.next_norm, self._eps, self._normed, "qwen", max_rows=max_rows)
