"""EAGLE-3 as kernel launches; ``modules.Eagle3`` defines it. Committed rows enter as no more than keys and values,
all at once; a draft is one row, again for each token, and stands from the newest committed row on. Like in
``decode_pass``, nothing is read back."""

from __future__ import annotations

from dataclasses import replace

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
from ..drafter import Committed, DraftBinding
from ..merged_weights import biases_of, side_by_side
from ..paired import kept_of
from ..target import TargetModel
from .modules import Eagle3


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
        self._cache, last_rows = kept_of(cache)
        self._hidden_rows = last_rows.rows

        def read(weight: Weight) -> Weight:
            return Int8Weight.of(weight.values) if in_8_bits and isinstance(weight, PlainWeight) else weight

        layer, (self._layer,) = drafter.layer, config.layers
        attention, mlp = layer.self_attn, layer.mlp
        self._fc, self._fc_bias = read(weight_of(drafter.fc)), drafter.fc.bias
        self._qkv = read(side_by_side(attention.q_proj, attention.k_proj, attention.v_proj))
        self._qkv_bias = biases_of(attention.q_proj, attention.k_proj, attention.v_proj)
        queries = self._layer.num_heads * self._layer.head_dim
        self._kv = self._qkv.rows(queries, self._qkv.shape[0])
        self._kv_bias = None if self._qkv_bias is None else self._qkv_bias[queries:].clone()
        self._output, self._output_bias = read(weight_of(attention.o_proj)), attention.o_proj.bias
        self._gate_up, self._down = read(side_by_side(mlp.gate_proj, mlp.up_proj)), read(weight_of(mlp.down_proj))
        self._norms = PairNorms(layer.input_layernorm.weight, layer.hidden_norm.weight, self._eps, rounded_first=True)
        q_norm, k_norm = (None if norm is None else norm.weight for norm in (attention.q_norm, attention.k_norm))
        self._head_norms = HeadNorms(q_norm, k_norm, self._eps, rounded_first=True, norm_values=False)
        self._post_norm, self._last_norm = layer.post_attention_layernorm.weight, drafter.norm.weight

        def rows(width: int) -> Tensor:
            return torch.zeros(MAX_ROWS, width, dtype=dtype, device=device)

        hidden = config.hidden_size
        self._read, self._hidden, self._pairs = rows(len(config.taps) * hidden), rows(hidden), rows(2 * hidden)
        self._joined_rows = rows(2 * hidden)
        """[16, hidden | embedding] of committed rows."""
        self._x, self._normed, self._act = rows(hidden), rows(hidden), rows(config.intermediate_size)
        self._mixed, self._projected, self._new_kv = rows(queries), rows(self._qkv.shape[0]), rows(self._kv.shape[0])
        self._attended = partial_sums(self.tiles.output, hidden, device)
        self._fed = partial_sums(self.tiles.down, hidden, device)
        self._scratch = AttendScratch(config.layers, [self._cache.capacity], device)
        self._first = torch.zeros(1, dtype=torch.int32, device=device)
        """int32 [1]: where the first committed row's pair stands."""
        self._steps = DraftPlaces.allocate(device)

    def trials(self) -> TileTrials[DraftTiles]:
        """Nothing to try: it uses a DFlash drafter's tiles."""
        return {}

    def ingest(self, committed: Committed | None = None) -> None:
        """Keeps keys and values of committed rows, and the hidden states behind them."""
        features, start, count = committed or self._waiting
        hidden, tiles, cache = self._hidden.shape[1], self.tiles, self._cache
        self._read.copy_(self._drafter.normed_features(features[:, :-hidden]))
        project(self._read, self._fc, self._hidden, tiles.context_kv, bias=self._fc_bias)
        self._joined_rows[:, :hidden].copy_(self._hidden)
        self._joined_rows[:, hidden:].copy_(features[:, -hidden:])
        pair_committed(self._joined_rows, start, count, self._hidden_rows, self._norms, self._first, self._pairs)
        project(self._pairs, self._kv, self._new_kv, tiles.context_kv, bias=self._kv_bias)
        norm_rope_store(self._new_kv, self._head_norms, self._drafter.frequencies, cache.k, cache.v, self._first, count)

    def draft(self, count: int) -> None:
        """Drafts ``count`` tokens, one behind the other."""
        tiles, cache, eps = self.tiles, self._cache, self._eps
        for index in range(count):
            self._pair(index)
            project(self._pairs, self._qkv, self._projected, tiles.qkv, max_rows=1, bias=self._qkv_bias)
            attend_rows(
                self._projected, self._head_norms, self._drafter.frequencies, cache.k, cache.v,
                self._steps.cursors[index, :1], self._steps.rows[index, :1], self._layer, self._mixed, self._scratch,
                max_rows=1,
            )  # fmt: skip
            project(self._mixed, self._output, self._attended, tiles.output, max_rows=1, bias=self._output_bias)
            add_and_norm(self._attended, self._x, self._post_norm, eps, self._normed, "qwen", max_rows=1)
            gate_up(self._normed, self._gate_up, self._act, "silu", tiles.gate_up, max_rows=1)
            project(self._act, self._down, self._fed, tiles.down, max_rows=1)
            add_and_norm(self._fed, self._x, self._last_norm, eps, self._normed, "qwen", max_rows=1)
            out = self.out
            out = replace(out, token=out.token[index:], probability=out.probability[index:], peak=out.peak[index:])
            head_rows(self._normed, self._head, None, out, tiles.head, max_rows=1)
            pick_rows(out, max_rows=1)

    def _pair(self, index: int) -> None:
        """Lays the token before and the hidden state that stands before it side by side, and begins the residual."""
        embedding, scale = self._target.embed_tokens.weight, self._target.embedding_scale
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
