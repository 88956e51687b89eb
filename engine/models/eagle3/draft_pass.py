"""EAGLE-3 as kernel launches; ``modules.Eagle3`` defines it. Committed rows enter all at once, in the last layer as no
more than keys and values. Like in ``decode_pass``, nothing is read back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ...kernels.decode.attention.attend_rows import AttendScratch, attend_rows
from ...kernels.decode.attention.rope import norm_rope_store
from ...kernels.decode.norm import add_and_norm, after_attention, after_feed_forward
from ...kernels.decode.products.dense import gate_up, partial_sums, project
from ...kernels.reference.joins import AttentionJoin, FeedForwardJoin
from ...kernels.round.pair_rows import PairNorms
from ...kernels.shared.heads import HeadNorms
from ...kernels.toolchain.jit import MAX_ROWS
from ...kernels.weights.kinds import weight_of
from ...kv_cache.cache import Cache
from ...kv_cache.layer_cache import LayerCache
from ...layer_config import AttentionConfig
from ..drafter import DraftBinding
from ..gemma4.kernel_layers import head_norms_of, joins_of
from ..gemma4.modules import Gemma4Attention
from ..merged_weights import LayerWeights
from ..paired_pass import PairedDraftPass
from ..pre_norm.modules import PreNormAttention, PreNormDecoderLayer
from ..target import TargetModel
from .modules import Eagle3, GemmaEagleLayer


@dataclass(frozen=True, slots=True)
class _Layer:
    config: AttentionConfig
    cache: LayerCache
    weights: LayerWeights
    input_norm: Tensor
    head_norms: HeadNorms
    post_norm: Tensor
    joins: tuple[AttentionJoin, FeedForwardJoin] | None
    """What stands behind attention and behind the MLP of Gemma 4's layer; None for others."""


class Eagle3DraftPass(PairedDraftPass):
    """Ingestion and drafting, bound to one cache and to the tensors that say which rows run."""

    def __init__(self, drafter: Eagle3, target: TargetModel, cache: Cache, bound: DraftBinding):
        """See ``Drafter.draft_pass``. Merges the drafter's weights in place."""
        config, device, dtype, first = drafter.config, bound.features.device, bound.features.dtype, drafter.first
        self._eps = eps = config.rms_norm_eps
        norms = PairNorms(first.input_layernorm.weight, first.hidden_norm.weight, eps, rounded_first=not config.gemma)
        super().__init__(drafter, target, cache, bound, norms, config.logit_softcap)
        self._drafter = drafter
        modules: list[GemmaEagleLayer | PreNormDecoderLayer] = [first, *drafter.further]
        self._fc, self._fc_bias = self._read(weight_of(drafter.fc)), drafter.fc.bias
        self._layers = [
            _Layer(
                kind, keys, LayerWeights.of(layer.self_attn, layer.mlp, self._read), layer.input_layernorm.weight,
                _head_norms(layer.self_attn, eps), layer.post_attention_layernorm.weight,
                joins_of(layer, drafter.norm.weight) if isinstance(layer, GemmaEagleLayer) else None,
            )
            for kind, keys, layer in zip(config.layers, self._keys, modules, strict=True)
        ]  # fmt: skip
        self._next_norms = [*(layer.input_norm for layer in self._layers[1:]), drafter.norm.weight]
        """What comes behind each layer: the next one's norm, or the head's."""
        last = self._layers[-1]
        queries = last.config.num_heads * last.config.head_dim
        self._kv = last.weights.qkv.rows(queries, last.weights.qkv.shape[0])
        bias = last.weights.qkv_bias
        self._kv_bias = None if bias is None else bias[queries:].clone()

        def rows(width: int) -> Tensor:
            return torch.zeros(MAX_ROWS, width, dtype=dtype, device=device)

        hidden = config.hidden_size
        self._features, self._hidden, self._joined_rows = (
            rows(len(config.taps) * hidden),
            rows(hidden),
            rows(2 * hidden),
        )
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

    def _run(self, layers: Sequence[_Layer], cursor: Tensor, rows: Tensor, max_rows: int) -> Tensor:
        """Runs pairs through the first layers; returns the residual, normed for what comes behind them."""
        tiles, eps, read = self.tiles, self._eps, self._pairs
        for layer, next_norm in zip(layers, self._next_norms, strict=False):
            weights, cache = layer.weights, layer.cache
            project(read, weights.qkv, self._projected, tiles.qkv, max_rows=max_rows, bias=weights.qkv_bias)
            attend_rows(
                self._projected, layer.head_norms, self._drafter.frequencies, cache.k, cache.v, cursor, rows,
                layer.config, self._mixed, self._scratch, max_rows=max_rows,
            )  # fmt: skip
            project(self._mixed, weights.output, self._attended, tiles.output, max_rows, bias=weights.output_bias)
            if layer.joins is None:
                add_and_norm(self._attended, self._x, layer.post_norm, eps, self._normed, "qwen", max_rows=max_rows)
            else:
                after_attention(self._attended, self._x, layer.joins[0], eps, self._normed, max_rows=max_rows)
            activation = self._drafter.config.activation
            gate_up(self._normed, weights.gate_up, self._act, activation, tiles.gate_up, max_rows=max_rows)
            project(self._act, weights.down, self._fed, tiles.down, max_rows=max_rows)
            if layer.joins is None:
                add_and_norm(self._fed, self._x, next_norm, eps, self._normed, "qwen", max_rows=max_rows)
            else:
                after_feed_forward(self._fed, None, self._x, layer.joins[1], eps, self._normed, max_rows=max_rows)
            read = self._normed
        return read


def _head_norms(attention: PreNormAttention | Gemma4Attention, eps: float) -> HeadNorms:
    if isinstance(attention, Gemma4Attention):
        return head_norms_of(attention)
    q_norm, k_norm = (None if norm is None else norm.weight for norm in (attention.q_norm, attention.k_norm))
    return HeadNorms(q_norm, k_norm, eps, rounded_first=True, norm_values=False)
