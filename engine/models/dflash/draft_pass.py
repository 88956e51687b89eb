"""The drafter as kernel launches: committed rows enter its context, and a block is drafted behind the anchor.
``modules.DFlashDrafter`` defines both; nothing is read back, and what is allocated is the graph's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from ...kernels.decode.attention.attend_rows import AttendScratch, attend_rows
from ...kernels.decode.attention.context_store import ContextStores, store_context
from ...kernels.decode.block_conv import block_conv, conv_and_norm
from ...kernels.decode.norm import add_and_norm, embed_rows
from ...kernels.decode.products.dense import gate_up, partial_sums, project
from ...kernels.decode.products.head import HeadOutput, head_rows
from ...kernels.decode.tiling.tile_trials import TileTrials
from ...kernels.decode.tiling.tiles import DraftTiles, draft_tiles
from ...kernels.shared.heads import HeadNorms
from ...kernels.toolchain.card import card_of
from ...kernels.toolchain.jit import MAX_ROWS
from ...kernels.weights.kinds import weight_of
from ...kv_cache.cache import Cache
from ...kv_cache.layer_cache import LayerCache
from ...layer_config import AttentionConfig
from ..drafter import Committed, DraftBinding
from ..merged_weights import LayerWeights
from ..target import TargetModel
from .modules import BlockConv, BlockLayer, DFlashDrafter, DraftLayer
from .tile_trials import draft_trials
from .weights import DraftWeights


@dataclass(frozen=True, slots=True)
class DraftKernels:
    config: AttentionConfig
    cache: LayerCache
    input_norm: Tensor
    head_norms: HeadNorms
    post_attention_norm: Tensor
    weights: LayerWeights
    convs: tuple[BlockConv, BlockConv] | None
    """The convolutions of DFlash 2 around attention and around the MLP; None for DFlash."""


class DFlashDraftPass:
    """Ingestion and drafting, bound to one cache and to the tensors that say which rows run."""

    reads_logits: ClassVar[bool] = False
    """Whether it picks from the head's logits, whatever its drafter's picker does."""

    def __init__(self, drafter: DFlashDrafter, target: TargetModel, cache: Cache, bound: DraftBinding):
        """See ``Drafter.draft_pass``. Merges the drafter's weights in place."""
        features, tokens, rows, tiles, head, choices = bound
        in_8_bits = head is not None or drafter.in_8_bits
        config = drafter.config
        device, dtype = drafter.norm.weight.device, drafter.norm.weight.dtype
        tiles = tiles or draft_tiles(in_8_bits, card_of(device), config.sizes)
        self.mask_token = config.mask_token_id
        self.block = torch.full((MAX_ROWS,), config.mask_token_id, dtype=torch.int64, device=device)
        """int64 [16], the block to draft: the anchor, then masks."""
        keep_logits = choices is not None or self.reads_logits or drafter.picker.reads_logits
        self._head = drafter.plain_head(target) if head is None else head
        out = HeadOutput.allocate(self._head.shape[0], tiles.head, device, keep_logits)
        self.out = replace(out, token=tokens, ids=drafter.token_ids)
        """The drafts and their probabilities: row i is about the i-th drafted token."""
        self._drafter, self._target, self._rows, self._tiles = drafter, target, rows, tiles
        self._choices = choices
        self._waiting = Committed(features, rows.ingest_start, rows.ingest_rows)
        self._weights = DraftWeights.of(drafter, in_8_bits)
        parts = zip(drafter.block_layers, cache.attention, self._weights.layers, strict=True)
        self._layers = [_layer(*weights) for weights in parts]
        self._stores = self._context_stores(cache)
        self._embedding_scale = target.embedding_scale if config.embedding_scale is None else config.embedding_scale
        capacities = [layer.capacity for layer in cache.attention]
        self._scratch = AttendScratch(config.layers, capacities, device)
        self._buffers = DFlashBuffers(config.layers, config.hidden_size, config.intermediate_size, tiles, dtype, device)
        if config.second is not None:
            self._buffers.chosen = torch.zeros(MAX_ROWS, 4 * config.second.groups, dtype=dtype, device=device)
            self._buffers.convolved = torch.zeros(MAX_ROWS, config.hidden_size, dtype=dtype, device=device)

    @property
    def tiles(self) -> DraftTiles:
        return self._tiles

    def trials(self) -> TileTrials[DraftTiles]:
        """How to launch its products with other tiles, to time them."""
        softcap, dtype = self._drafter.config.logit_softcap, self._buffers.x.dtype
        return draft_trials(self._weights, self._head, softcap, dtype)

    def ingest(self, committed: Committed | None = None) -> None:
        """Appends committed rows to the context: their features become every layer's keys and values."""
        drafter, buffers, tiles = self._drafter, self._buffers, self._tiles
        features, start, count = committed or self._waiting
        eps, norm = drafter.config.rms_norm_eps, drafter.hidden_norm.weight
        project(features, self._weights.context, buffers.context_sums, tiles.context)
        add_and_norm(buffers.context_sums, None, norm, eps, buffers.context, drafter.config.norm_style)
        weights = self._weights
        project(buffers.context, weights.context_kv, buffers.context_kv, tiles.context_kv, bias=weights.context_kv_bias)
        self._store_context(start, count)

    def draft(self, count: int, tree: bool = False) -> None:
        """Drafts the whole block in one pass, whose own keys lie past the cursor."""
        buffers, tiles, config = self._buffers, self._tiles, self._drafter.config
        x, normed, eps = buffers.x, buffers.normed, config.rms_norm_eps
        embedding, first_norm = self._drafter.embedding_of(self._target).weight, self._layers[0].input_norm
        embed_rows(self.block, embedding, self._embedding_scale, x, normed, first_norm, eps, config.norm_style)
        next_norms = [layer.input_norm for layer in self._layers[1:]] + [self._drafter.norm.weight]
        for index, (layer, next_norm) in enumerate(zip(self._layers, next_norms, strict=True)):
            if layer.convs is not None:
                self._run_between_convs(layer, layer.convs, next_norm)
                continue
            self._attend(layer, normed)
            self._behind_attention(index, layer)
            gate_up(normed, layer.weights.gate_up, buffers.act, config.activation, tiles.gate_up)
            project(buffers.act, layer.weights.down, buffers.down, tiles.down)
            self._behind_feed_forward(index, next_norm)
            self._behind(index, next_norm)
        # Row j of a block predicts position j, so the anchor's row predicts nothing; unless the first row drafts.
        rows = buffers.padded[config.first_slot :][:MAX_ROWS]
        head_rows(rows, self._head, config.logit_softcap, self.out, tiles.head)
        self._pick(rows, tree)

    def _context_stores(self, cache: Cache) -> ContextStores | None:
        return ContextStores(cache.attention, [layer.head_norms for layer in self._layers])

    def _store_context(self, start: Tensor, count: Tensor) -> None:
        """Stores the keys and values of committed rows in every layer."""
        assert self._stores is not None
        store_context(self._buffers.context_kv, self._stores, self._drafter.frequencies, start, count)

    def _behind_attention(self, index: int, layer: DraftKernels) -> None:
        """Adds to the residual stream what attention says, and norms it for what follows."""
        buffers, eps = self._buffers, self._drafter.config.rms_norm_eps
        add_and_norm(buffers.output, buffers.x, layer.post_attention_norm, eps, buffers.normed, "qwen")

    def _behind_feed_forward(self, index: int, next_norm: Tensor) -> None:
        buffers, eps = self._buffers, self._drafter.config.rms_norm_eps
        add_and_norm(buffers.down, buffers.x, next_norm, eps, buffers.normed, "qwen")

    def _behind(self, index: int, next_norm: Tensor) -> None:
        """What happens to the rows, and to their normed ones for the next layer, behind a layer."""

    def _pick(self, rows: Tensor, tree: bool) -> None:
        """Picks from what the head left for ``rows`` [16, hidden], perhaps the choices for a ``tree``."""
        choices = self._choices if tree else None
        self._drafter.picker.launch(self.out, rows, self.block, choices, self._tiles.head)

    def _run_between_convs(self, layer: DraftKernels, convs: tuple[BlockConv, BlockConv], next_norm: Tensor) -> None:
        """Runs a layer of DFlash 2, whose branches have convolutions before and behind them."""
        buffers, tiles, eps = self._buffers, self._tiles, self._drafter.config.rms_norm_eps
        x, normed, (before, behind) = buffers.x, buffers.normed, convs
        self._choose(before)
        block_conv(normed, buffers.chosen, before.base_kernel, buffers.convolved)
        self._attend(layer, buffers.convolved)
        norm = layer.post_attention_norm
        conv_and_norm(buffers.output, buffers.chosen, before.base_kernel, x, norm, eps, normed)
        self._choose(behind)
        block_conv(normed, buffers.chosen, behind.base_kernel, buffers.convolved)
        gate_up(buffers.convolved, layer.weights.gate_up, buffers.act, "silu", tiles.gate_up)
        project(buffers.act, layer.weights.down, buffers.down, tiles.down)
        conv_and_norm(buffers.down, buffers.chosen, behind.base_kernel, x, next_norm, eps, normed)

    def _choose(self, conv: BlockConv) -> None:
        project(self._buffers.normed, weight_of(conv.kernel_projection), self._buffers.chosen, self._tiles.qkv)

    def _attend(self, layer: DraftKernels, normed: Tensor) -> None:
        buffers, tiles, rows, config, cache = self._buffers, self._tiles, self._rows, layer.config, layer.cache
        qkv, mixed = buffers.qkv[config], buffers.mixed[config]
        weights = layer.weights
        project(normed, weights.qkv, qkv, tiles.qkv, bias=weights.qkv_bias)
        attend_rows(
            qkv, layer.head_norms, self._drafter.frequencies, cache.k, cache.v, rows.cursor, rows.draft_width, config,
            mixed, self._scratch,
        )  # fmt: skip
        project(mixed, weights.output, buffers.output, tiles.output, bias=weights.output_bias)


class DFlashBuffers:
    """The tensors that one launch leaves for the next; all layers share them."""

    def __init__(
        self,
        layers: Sequence[AttentionConfig],
        hidden: int,
        intermediate: int,
        tiles: DraftTiles,
        dtype: torch.dtype,
        device: torch.device,
    ):
        def rows(*shape: int, count: int = MAX_ROWS) -> Tensor:
            return torch.zeros(count, *shape, dtype=dtype, device=device)

        self.context_sums = partial_sums(tiles.context, hidden, device)
        self.context = rows(hidden)
        self.x = rows(hidden)
        self.padded = rows(hidden, count=MAX_ROWS + 1)
        """The normed rows and one more: the head reads 16 rows from the second on."""
        self.normed = self.padded[:MAX_ROWS]
        self.qkv = {layer: rows(layer.qkv_columns) for layer in set(layers)}
        self.context_kv = rows(sum(layer.qkv_columns - layer.num_heads * layer.head_dim for layer in layers))
        self.mixed = {layer: rows(layer.num_heads * layer.head_dim) for layer in set(layers)}
        self.output = partial_sums(tiles.output, hidden, device)
        self.act = rows(intermediate)
        self.down = partial_sums(tiles.down, hidden, device)
        self.chosen = self.convolved = rows(0)
        """For DFlash 2: the weights that rows choose for convolutions, and the convolutions' outputs."""


def _layer(module: BlockLayer, cache: LayerCache, weights: LayerWeights) -> DraftKernels:
    attention = module.self_attn
    return DraftKernels(
        config=attention.config,
        cache=cache,
        input_norm=module.input_layernorm.weight,
        head_norms=attention.head_norms,
        post_attention_norm=module.post_attention_layernorm.weight,
        weights=weights,
        convs=(module.attention_conv, module.mlp_conv) if isinstance(module, DraftLayer) and module.convolves else None,
    )
