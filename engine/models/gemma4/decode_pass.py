"""The target's pass of at most 16 rows as kernel launches, for decoding rounds; ``modules.Gemma4`` defines it. Nothing
is allocated or read back and no launch depends on the data, so a CUDA graph can capture it. Rows come from ``ids`` and
stand at the cursor; their number may change between replays."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ...kernels.decode.attention import AttendScratch, attend_rows
from ...kernels.decode.dense import gate_up, partial_sums, project
from ...kernels.decode.experts import DenseDown, expert_down_rows, expert_gate_up_rows
from ...kernels.decode.head import HeadOutput, head_rows, pick_rows
from ...kernels.decode.norm import after_attention, after_feed_forward, embed_rows
from ...kernels.decode.router import Assignment, RouterRows, SplitScratch, gate_up_and_route
from ...kernels.decode.tiles import TargetTiles, target_tiles, with_splits_of
from ...kernels.decode.trials import Trials
from ...kernels.round.tree_rows import TreeRows
from ...kernels.toolchain.card import card_of
from ...kernels.toolchain.jit import MAX_ROWS
from ...kernels.weights.kinds import format_of
from ...kernels.weights.plain import PlainWeight
from ...kernels.weights.weight import Weight
from ...kv_cache.cache import Cache
from ...layer_config import AttentionConfig
from ..family import AFTER_NORM, TargetConfig
from ..packed import format_of_target
from .kernel_layers import KernelLayer, RoutedExperts, kernel_layers
from .modules import DecoderLayer, Gemma4
from .tile_trials import target_trials


class _Buffers:
    """What one launch leaves for the next; all layers share it. Activations have the model's dtype."""

    def __init__(self, config: TargetConfig, tiles: TargetTiles, dtype: torch.dtype, device: torch.device):
        def rows(*shape: int) -> Tensor:
            return torch.zeros(MAX_ROWS, *shape, dtype=dtype, device=device)

        hidden = config.hidden_size
        self.x = rows(hidden)
        """The residual."""
        self.normed = rows(hidden)
        """The residual, normed for the next product: of attention, of the dense MLP, of the head."""
        self.qkv = {layer: rows(_qkv_columns(layer)) for layer in set(config.attention)}
        self.mixed = {layer: rows(layer.num_heads * layer.head_dim) for layer in set(config.attention)}
        self.output = partial_sums(tiles.output, hidden, device)
        self.act = rows(config.intermediate_size)
        self.down = partial_sums(tiles.down, hidden, device)
        if config.moe is None:
            return
        experts, top_k = config.moe.num_experts, config.moe.top_k
        self.router_input, self.expert_input = rows(hidden), rows(hidden)
        self.splits = SplitScratch.allocate(tiles.router, experts, device)
        self.assignment = Assignment.allocate(experts, top_k, device)
        self.pair_act = rows(top_k, config.moe.intermediate_size).flatten(0, 1)
        self.pairs = rows(top_k, hidden)


class DecodePass:
    """The forward pass, bound to one cache and to the tensors that say which rows run."""

    def __init__(
        self,
        target: Gemma4,
        cache: Cache,
        cursor: Tensor,
        rows: Tensor,
        taps: Sequence[int] = (),
        tiles: TargetTiles | None = None,
    ):
        """``cursor`` and ``rows``, int32 [1] on the device: committed positions, and live rows of the 16. ``taps`` as
        in ``Gemma4.forward``. Merges the target's weights in place."""
        device, dtype = target.device, target.dtype
        self.cursor, self.rows = cursor, rows
        self.ids = torch.zeros(MAX_ROWS, dtype=torch.int64, device=device)
        """Tokens of the rows, to be filled before a pass. Any valid tokens stand from ``rows`` on."""
        moe, card, packed = target.config.moe, card_of(device), format_of_target(target)
        self.tiles = target_tiles(moe, card, packed) if tiles is None else tiles
        self._tiles = {"bf16": with_splits_of(self.tiles, target_tiles(moe, card)), packed: self.tiles}
        self.features = torch.zeros(MAX_ROWS + 1, len(taps) * target.config.hidden_size, dtype=dtype, device=device)
        """Outputs of the tapped layers side by side, [17, taps * hidden]; the last row is for a pass ``beside``."""
        self.out = HeadOutput.allocate(target.config.vocab_size, self.tiles.head, device)
        """Logits, and the most likely token of each row."""
        self._target = target
        self._taps = {layer: number for number, layer in enumerate(taps)}
        self._buffers = _Buffers(target.config, self.tiles, dtype, device)
        capacities = [layer.capacity for layer in cache.attention]
        self._scratch = AttendScratch(target.config.attention, capacities, device)
        self._layers = kernel_layers(target, cache)

    def forward(self, max_rows: int = MAX_ROWS, beside: bool = False, tree: TreeRows | None = None) -> None:
        """Runs the rows of ``ids``, in a chain or as ``tree`` says: fills ``out`` and ``features``, writes keys and
        values past the cursor. ``max_rows`` bounds the rows of any replay and changes no bit of a row. ``beside``:
        features of a one-row pass go behind the sixteen places, which hold what the drafter has yet to see."""
        self._embed(max_rows)
        softcap, head = self._target.config.logit_softcap, PlainWeight(self._target.head)
        first_row = MAX_ROWS if beside else 0
        for index, layer in enumerate(self._layers):
            self._attend(layer, max_rows, tree)
            self._feed_forward(layer, self._feature_columns(index, first_row), max_rows)
        if (columns := self._feature_columns(AFTER_NORM, first_row)) is not None:
            columns[:max_rows].copy_(self._buffers.normed[:max_rows])
        head_rows(self._buffers.normed, head, softcap, self.out, self.tiles.head, max_rows)
        pick_rows(self.out, self.tiles.rows, max_rows)

    def trials(self) -> Trials[TargetTiles]:
        """How to time other tiles for it."""
        return target_trials(self._target, self._layers, self._tiles["bf16"])

    def _embed(self, max_rows: int) -> None:
        target, buffers = self._target, self._buffers
        first = target.layers[0]
        assert isinstance(first, DecoderLayer)
        embed_rows(
            self.ids, target.embed_tokens.weight, target.embedding_scale, buffers.x, buffers.normed,
            first.input_layernorm.weight, target.config.rms_norm_eps,
            tiles=self.tiles.rows, max_rows=max_rows,
        )  # fmt: skip

    def _attend(self, layer: KernelLayer, max_rows: int, tree: TreeRows | None) -> None:
        """From the normed residual to the residual after attention, normed for what follows."""
        config, cache, buffers, tiles = layer.config, layer.cache, self._buffers, self.tiles
        qkv, mixed = buffers.qkv[config], buffers.mixed[config]
        project(buffers.normed, layer.qkv, qkv, self._for(layer.qkv).qkv, max_rows)
        attend_rows(
            qkv, layer.head_norms, layer.frequencies, cache.k, cache.v, self.cursor, self.rows, config, mixed,
            self._scratch,
            max_rows=max_rows, tree=tree,
        )  # fmt: skip
        project(mixed, layer.output, buffers.output, self._for(layer.output).output, max_rows)
        after_attention(
            buffers.output, buffers.x, layer.attention_join, layer.head_norms.eps, buffers.normed,
            buffers.expert_input if layer.routed else None, buffers.router_input if layer.routed else None,
            tiles=tiles.rows, max_rows=max_rows,
        )  # fmt: skip

    def _feed_forward(self, layer: KernelLayer, features: Tensor | None, max_rows: int) -> None:
        """From the residual after attention to the layer's output, normed for the next."""
        buffers, tiles, routed = self._buffers, self.tiles, layer.routed
        if routed is None:
            up_tiles = self._for(layer.gate_up).gate_up
            gate_up(buffers.normed, layer.gate_up, buffers.act, "gelu_tanh", up_tiles, max_rows)
            project(buffers.act, layer.down, buffers.down, self._for(layer.down).down, max_rows)
        else:
            self._run_experts(layer, routed, max_rows)
        after_feed_forward(
            buffers.down, buffers.pairs if routed else None, buffers.x, layer.feed_forward_join, layer.head_norms.eps,
            buffers.normed, features,
            tiles=tiles.rows, max_rows=max_rows,
        )  # fmt: skip

    def _run_experts(self, layer: KernelLayer, routed: RoutedExperts, max_rows: int) -> None:
        """The dense MLP and the experts beside it."""
        buffers, tiles, found = self._buffers, self.tiles, self._buffers.assignment
        router = RouterRows(
            buffers.router_input,
            routed.router.proj.weight,
            routed.router.per_expert_scale,
            routed.router.forced,
            self.rows,
            found,
            tiles.router,
        )
        up_tiles = self._for(layer.gate_up).gate_up
        gate_up_and_route(buffers.normed, layer.gate_up, buffers.act, up_tiles, router, buffers.splits, max_rows)
        dense = DenseDown(buffers.act, layer.down, buffers.down, self._for(layer.down).down)
        of_experts, act = self._for(routed.gate_up), buffers.pair_act
        up_tiles = of_experts.expert_gate_up_alone if max_rows == 1 else of_experts.expert_gate_up
        expert_gate_up_rows(buffers.expert_input, routed.gate_up, found, act, up_tiles, dense, max_rows)
        expert_down_rows(act, routed.down, found, buffers.pairs, self._for(routed.down).expert_down, max_rows)

    def _for(self, weight: Weight) -> TargetTiles:
        """The choices for the format that a weight is in: a file may leave some products in bf16."""
        return self._tiles[format_of(weight)]

    def _feature_columns(self, index: int, first_row: int) -> Tensor | None:
        """A tapped layer's part of the features, from a row on."""
        if index not in self._taps:
            return None
        hidden = self._target.config.hidden_size
        return self.features[first_row:, self._taps[index] * hidden :][:, :hidden]


def _qkv_columns(layer: AttentionConfig) -> int:
    kv_parts = 1 if layer.value_is_key else 2
    return (layer.num_heads + kv_parts * layer.num_kv_heads) * layer.head_dim
