"""EAGLE-3 as kernel launches; ``modules.Eagle3`` defines it. Committed rows enter all at once, in the last layer as no
more than keys and values; a draft is one row, again for each token, and stands from the newest committed row on. Like
in ``decode_pass``, nothing is read back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ...kernels.decode.attention.attend_rows import AttendScratch, attend_rows
from ...kernels.decode.attention.rope import norm_rope_store
from ...kernels.decode.norm import add_and_norm
from ...kernels.decode.products.dense import gate_up, partial_sums, project
from ...kernels.decode.products.head import HeadOutput, head_rows, pick_rows
from ...kernels.decode.tiling.tile_trials import TileTrials
from ...kernels.decode.tiling.tiles import DraftTiles, draft_tiles
from ...kernels.round.pair_rows import DraftPlaces, PairNorms, pair_committed, pair_first, pair_next
from ...kernels.shared.heads import HeadNorms
from ...kernels.toolchain.card import card_of
from ...kernels.toolchain.jit import MAX_ROWS
from ...kernels.weights.int8 import Int8Weight
from ...kernels.weights.kinds import weight_of
from ...kernels.weights.plain import PlainWeight
from ...kernels.weights.weight import Weight
from ...kv_cache.cache import Cache
from ...kv_cache.layer_cache import LayerCache
from ...layer_config import AttentionConfig
from ..drafter import Committed, DraftBinding
from ..merged_weights import LayerWeights
from ..paired import kept_of
from ..pre_norm.modules import PreNormAttention, PreNormDecoderLayer
from ..target import TargetModel
from .modules import Eagle3, EagleLayer


@dataclass(frozen=True, slots=True)
class _Layer:
    config: AttentionConfig
    cache: LayerCache
    weights: LayerWeights
    input_norm: Tensor
    head_norms: HeadNorms
    post_norm: Tensor


class Eagle3DraftPass:
    """Ingestion and drafting, bound to one cache and to the tensors that say which rows run."""

    mask_token = 0

    def __init__(self, drafter: Eagle3, target: TargetModel, cache: Cache, bound: DraftBinding):
        """See ``Drafter.draft_pass``. Merges the drafter's weights in place."""
        config, device, dtype = drafter.config, bound.features.device, bound.features.dtype
        in_8_bits = bound.head is not None or drafter.in_8_bits
        self.tiles = bound.tiles or draft_tiles(in_8_bits, card_of(device))
        self.block = torch.zeros(MAX_ROWS, dtype=torch.int64, device=device)
        self._drafter, self._target, self._rows, self._eps = drafter, target, bound.rows, config.rms_norm_eps
        self._head = drafter.plain_head(target) if bound.head is None else bound.head
        out = HeadOutput.allocate(self._head.shape[0], self.tiles.head, device, keep_logits=False)
        self.out = replace(out, token=bound.tokens, ids=drafter.token_ids)
        self._waiting = Committed(bound.features, bound.rows.ingest_start, bound.rows.ingest_rows)
        caches, last_rows = kept_of(cache)
        self._hidden_rows = last_rows.rows

        def read(weight: Weight) -> Weight:
            return Int8Weight.of(weight.values) if in_8_bits and isinstance(weight, PlainWeight) else weight

        eps, first = self._eps, drafter.first
        modules: list[EagleLayer | PreNormDecoderLayer] = [first, *drafter.further]
        self._fc, self._fc_bias = read(weight_of(drafter.fc)), drafter.fc.bias
        self._layers = [
            _Layer(
                kind, keys, LayerWeights.of(layer.self_attn, layer.mlp, read), layer.input_layernorm.weight,
                _head_norms(layer.self_attn, eps), layer.post_attention_layernorm.weight,
            )
            for kind, keys, layer in zip(config.layers, caches, modules, strict=True)
        ]  # fmt: skip
        self._norms = PairNorms(first.input_layernorm.weight, first.hidden_norm.weight, eps, rounded_first=True)
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
        self._read, self._hidden, self._pairs = rows(len(config.taps) * hidden), rows(hidden), rows(2 * hidden)
        self._joined_rows = rows(2 * hidden)
        """[16, hidden | embedding] of committed rows."""
        self._x, self._normed, self._act = rows(hidden), rows(hidden), rows(config.intermediate_size)
        self._mixed, self._projected = rows(queries), rows(last.weights.qkv.shape[0])
        self._new_kv = rows(self._kv.shape[0])
        self._attended = partial_sums(self.tiles.output, hidden, device)
        self._fed = partial_sums(self.tiles.down, hidden, device)
        self._scratch = AttendScratch(config.layers, [each.capacity for each in caches], device)
        self._first = torch.zeros(1, dtype=torch.int32, device=device)
        """int32 [1]: where the first committed row's pair stands."""
        self._steps = DraftPlaces.allocate(device)

    def trials(self) -> TileTrials[DraftTiles]:
        """Nothing to try: it uses a DFlash drafter's tiles."""
        return {}

    def ingest(self, committed: Committed | None = None) -> None:
        """Keeps keys and values of committed rows, and the hidden states behind them."""
        features, start, count = committed or self._waiting
        hidden, tiles, last = self._hidden.shape[1], self.tiles, self._layers[-1]
        self._read.copy_(self._drafter.normed_features(features[:, :-hidden]))
        project(self._read, self._fc, self._hidden, tiles.context_kv, bias=self._fc_bias)
        self._joined_rows[:, :hidden].copy_(self._hidden)
        self._joined_rows[:, hidden:].copy_(features[:, -hidden:])
        pair_committed(self._joined_rows, start, count, self._hidden_rows, self._norms, self._first, self._pairs)
        read = self._pairs
        if len(self._layers) > 1:
            self._begin_residual()
            read = self._run(self._layers[:-1], self._first, count, MAX_ROWS)
        project(read, self._kv, self._new_kv, tiles.context_kv, bias=self._kv_bias)
        frequencies, cache = self._drafter.frequencies, last.cache
        norm_rope_store(self._new_kv, last.head_norms, frequencies, cache.k, cache.v, self._first, count)

    def _begin_residual(self) -> None:
        """Lays what committed rows are paired with into the residual stream."""
        hidden, places = self._x.shape[1], self._first + torch.arange(MAX_ROWS, device=self._x.device)
        plain = self._hidden_rows[places % len(self._hidden_rows)]
        self._x.copy_(self._pairs[:, hidden:] if self._drafter.config.residual_normed else plain)

    def draft(self, count: int) -> None:
        """Drafts ``count`` tokens, one behind the other."""
        for index in range(count):
            self._pair(index)
            self._run(self._layers, self._steps.cursors[index, :1], self._steps.rows[index, :1], 1)
            out = self.out
            out = replace(out, token=out.token[index:], probability=out.probability[index:], peak=out.peak[index:])
            head_rows(self._normed, self._head, None, out, self.tiles.head, max_rows=1)
            pick_rows(out, max_rows=1)

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
            add_and_norm(self._attended, self._x, layer.post_norm, eps, self._normed, "qwen", max_rows=max_rows)
            gate_up(self._normed, weights.gate_up, self._act, "silu", tiles.gate_up, max_rows=max_rows)
            project(self._act, weights.down, self._fed, tiles.down, max_rows=max_rows)
            add_and_norm(self._fed, self._x, next_norm, eps, self._normed, "qwen", max_rows=max_rows)
            read = self._normed
        return read

    def _pair(self, index: int) -> None:
        """Lays the token before and the hidden state that stands before it side by side, and begins the residual."""
        embedding = self._drafter.embedding_of(self._target).weight
        scale = 1.0 if self._drafter.config.tables.embedding else self._target.embedding_scale
        config, rows = self._drafter.config, self._rows
        residual = self._x, config.residual_normed
        if index > 0:
            before = self._normed if config.feeds_normed else self._x
            pair_next(self.out.token[index - 1 :], embedding, scale, before, self._norms, self._pairs, *residual)
            return
        pair_first(
            self.block, embedding, scale, self._hidden_rows, rows.cursor, rows.draft_width, self._norms, self._steps,
            self._pairs, *residual,
        )  # fmt: skip


def _head_norms(attention: PreNormAttention, eps: float) -> HeadNorms:
    q_norm, k_norm = (None if norm is None else norm.weight for norm in (attention.q_norm, attention.k_norm))
    return HeadNorms(q_norm, k_norm, eps, rounded_first=True, norm_values=False)
