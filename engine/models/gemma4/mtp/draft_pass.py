"""The assistant as kernel launches: one row, again for each drafted token. ``modules.MtpDrafter`` defines it; like in
``decode_pass``, nothing is allocated or read back. Keys and values don't change between the drafts of a round, so those
of the window, which lie in a ring, are laid in order once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ....kernels.decode.attention.attend_rows import AttendScratch, attend_one_query
from ....kernels.decode.attention.rope import norm_rope_queries
from ....kernels.decode.norm import add_and_norm, after_attention, after_feed_forward, embed_rows
from ....kernels.decode.products.dense import gate_up, partial_sums, project
from ....kernels.decode.products.head import HeadOutput, head_rows, pick_rows
from ....kernels.decode.tiling.tile_trials import TileTrials
from ....kernels.decode.tiling.tiles import DraftTiles, draft_tiles
from ....kernels.reference.joins import AttentionJoin, FeedForwardJoin
from ....kernels.round.last_row import begin_draft, gather_window, keep_last
from ....kernels.toolchain.card import card_of
from ....kernels.toolchain.jit import MAX_ROWS
from ....kernels.weights.kinds import weight_of
from ....kernels.weights.plain import PlainWeight
from ....kernels.weights.weight import Weight
from ....kv_cache.borrowed import BorrowedCache
from ....layer_config import AttentionConfig
from ...drafter import Committed, DraftBinding
from ...merged_weights import side_by_side
from ...target import TargetModel
from ..kernel_layers import joins_of
from .config import MtpConfig
from .modules import AssistantLayer, MtpDrafter


@dataclass(frozen=True, slots=True)
class _Keys:
    """The keys and values to which layers of one kind attend."""

    k: Tensor
    v: Tensor
    last: Tensor | None
    """int32 [1] on the device: the place of the newest key, where that isn't its position."""


@dataclass(frozen=True, slots=True)
class _AssistantKernels:
    config: AttentionConfig
    q: Weight
    q_norm: Tensor
    frequencies: Tensor
    output: Weight
    attention_join: AttentionJoin
    gate_up: Weight
    down: Weight
    feed_forward_join: FeedForwardJoin


class AssistantDraftPass:
    """Ingestion and drafting, bound to one cache and to the tensors that say which rows run."""

    mask_token = 0

    def __init__(self, drafter: MtpDrafter, target: TargetModel, cache: BorrowedCache, bound: DraftBinding):
        """See ``Drafter.draft_pass``; merges the drafter's weights in place."""
        features, tokens, rows, tiles, _, _ = bound
        config, device, dtype = drafter.config, cache.row.device, cache.row.dtype
        self.tiles = draft_tiles(False, card_of(device)) if tiles is None else tiles
        self.block = torch.zeros(MAX_ROWS, dtype=torch.int64, device=device)
        out = HeadOutput.allocate(target.config.vocab_size, self.tiles.head, device, keep_logits=False)
        self.out = replace(out, token=tokens)
        self._drafter, self._target, self._cache, self._rows = drafter, target, cache, rows
        self._waiting = Committed(features, rows.ingest_start, rows.ingest_rows)
        self._layers = _layers(drafter)
        self._keys = {layer: _keys(layer, cache) for layer in dict.fromkeys(config.layers)}
        alone = [replace(layer, window=None) for layer in self._keys]
        self._scratch = AttendScratch(alone, [keys.k.shape[1] for keys in self._keys.values()], device)
        self._one = torch.ones(1, dtype=torch.int32, device=device)
        self._newest = torch.zeros(1, dtype=torch.int32, device=device)
        """int32 [1]: the last committed position."""
        self._head = PlainWeight(drafter.model.embed_tokens.weight)
        self._buffers = AssistantBuffers(config, self.tiles, dtype, device)

    def trials(self) -> TileTrials[DraftTiles]:
        """Nothing to try: an assistant uses a DFlash drafter's tiles."""
        return {}

    def ingest(self, committed: Committed | None = None) -> None:
        """Keeps the features behind the newest committed row."""
        features, _, count = committed or self._waiting
        keep_last(features, count, self._cache.row)

    def draft(self, count: int, tree: bool = False) -> None:
        """Drafts ``count`` tokens, one behind the other."""
        cursor, buffers = self._rows.cursor, self._buffers
        buffers.x.zero_()
        for layer, keys in self._keys.items():
            if layer.window is not None and keys.last is not None:
                ring = self._cache.lent(layer.window)
                gather_window(ring.k, ring.v, cursor, layer.window, keys.k, keys.v, keys.last)
        begin_draft(self._cache.row, cursor, buffers.hidden, self._newest)
        for index in range(count):
            self._draft_one(index, is_last=index == count - 1)

    def _draft_one(self, index: int, is_last: bool) -> None:
        """Runs one pass, from the token before and the hidden state behind it to the next of both."""
        drafter, buffers, tiles, eps = self._drafter, self._buffers, self.tiles, self._drafter.config.rms_norm_eps
        before = self.block if index == 0 else self.out.token[index - 1 :]
        embedding, scale, x = self._target.embed_tokens.weight, self._target.embedding_scale, buffers.x[index]
        embed_rows(before, embedding, scale, buffers.embedded, buffers.unread, buffers.ones, eps, max_rows=1)
        project(buffers.inputs, weight_of(drafter.pre_projection), buffers.input_sums, tiles.context, max_rows=1)
        first_norm = drafter.model.layers[0].get_parameter("input_layernorm.weight")
        add_and_norm(buffers.input_sums, x, first_norm, eps, buffers.normed, "gemma", max_rows=1)
        for layer in self._layers:
            self._attend(layer, x)
            gate_up(buffers.normed, layer.gate_up, buffers.act, "gelu_tanh", tiles.gate_up, max_rows=1)
            project(buffers.act, layer.down, buffers.down, tiles.down, max_rows=1)
            after_feed_forward(buffers.down, None, x, layer.feed_forward_join, eps, buffers.normed, max_rows=1)
        out = self.out
        out = replace(out, token=out.token[index:], probability=out.probability[index:], peak=out.peak[index:])
        if not is_last:
            behind = weight_of(drafter.post_projection)
            project(buffers.normed, behind, buffers.hidden, tiles.context_kv, max_rows=1)
        head_rows(buffers.normed, self._head, None, out, tiles.head, max_rows=1)
        pick_rows(out, max_rows=1)

    def _attend(self, layer: _AssistantKernels, x: Tensor) -> None:
        """Attends, from the normed residual to the residual behind attention, normed for the MLP."""
        config, buffers, tiles, eps = layer.config, self._buffers, self.tiles, self._drafter.config.rms_norm_eps
        q, mixed, keys = buffers.q[config], buffers.mixed[config], self._keys[config]
        project(buffers.normed, layer.q, q, tiles.qkv, max_rows=1)
        norm_rope_queries(q, layer.q_norm, eps, layer.frequencies, self._rows.cursor, self._one, config.num_heads)
        last = self._newest if keys.last is None else keys.last
        attend_one_query(q, keys.k, keys.v, last, self._one, config, mixed, self._scratch)
        project(mixed, layer.output, buffers.output, tiles.output, max_rows=1)
        after_attention(buffers.output, x, layer.attention_join, eps, buffers.normed, max_rows=1)


class AssistantBuffers:
    """The tensors that one launch leaves for the next; all layers share them."""

    def __init__(self, config: MtpConfig, tiles: DraftTiles, dtype: torch.dtype, device: torch.device):
        def rows(*shape: int, count: int = MAX_ROWS) -> Tensor:
            return torch.zeros(count, *shape, dtype=dtype, device=device)

        hidden, of_target = config.hidden_size, config.target_hidden_size
        self.inputs = rows(2 * of_target)
        """The embedding of the token and, beside it, the hidden state."""
        halves = self.inputs.view(2 * MAX_ROWS, of_target)
        self.embedded, self.hidden = halves[:MAX_ROWS], halves[1 : MAX_ROWS + 1]
        """Views whose first rows are the two halves of the first input."""
        self.unread, self.ones = rows(of_target), torch.ones(of_target, dtype=dtype, device=device)
        self.input_sums = partial_sums(tiles.context, hidden, device)
        self.x = rows(MAX_ROWS, hidden, count=config.block_size - 1)
        """The residual of each draft, 0 before it begins."""
        self.normed = rows(hidden)
        self.q = {layer: rows(layer.num_heads * layer.head_dim) for layer in set(config.layers)}
        self.mixed = {layer: rows(layer.num_heads * layer.head_dim) for layer in set(config.layers)}
        self.output = partial_sums(tiles.output, hidden, device)
        self.act = rows(config.intermediate_size)
        self.down = partial_sums(tiles.down, hidden, device)


def _keys(layer: AttentionConfig, cache: BorrowedCache) -> _Keys:
    lent = cache.lent(layer.window)
    if layer.window is None:
        return _Keys(lent.k, lent.v, None)
    kv_heads, _, head_dim = lent.k.shape
    k, v = (lent.k.new_zeros(kv_heads, layer.window - 1, head_dim) for _ in range(2))
    return _Keys(k, v, torch.zeros(1, dtype=torch.int32, device=k.device))


def _layers(drafter: MtpDrafter) -> list[_AssistantKernels]:
    modules = [module for module in drafter.model.layers if isinstance(module, AssistantLayer)]
    # Each layer's last kernel applies the norm that comes next.
    next_norms = [module.input_layernorm.weight for module in modules[1:]] + [drafter.model.norm.weight]
    return [_layer(drafter, module, norm) for module, norm in zip(modules, next_norms, strict=True)]


def _layer(drafter: MtpDrafter, module: AssistantLayer, next_norm: Tensor) -> _AssistantKernels:
    attention, mlp = module.self_attn, module.mlp
    attention_join, feed_forward_join = joins_of(module, next_norm)
    return _AssistantKernels(
        config=attention.config,
        q=weight_of(attention.q_proj),
        q_norm=attention.q_norm.weight,
        frequencies=drafter.frequencies[attention.config.rope],
        output=weight_of(attention.o_proj),
        attention_join=attention_join,
        gate_up=side_by_side(mlp.gate_proj, mlp.up_proj),
        down=weight_of(mlp.down_proj),
        feed_forward_join=feed_forward_join,
    )
