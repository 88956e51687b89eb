"""The target's pass of at most 16 rows as kernel launches, for decoding rounds; ``modules.Gemma4`` defines it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ...kernels.decode.experts.experts import DenseDown, expert_down_rows, expert_gate_up_rows
from ...kernels.decode.experts.router import Assignment, RouterRows, SplitScratch, gate_up_and_route
from ...kernels.decode.norm import after_attention, after_feed_forward
from ...kernels.decode.products.dense import gate_up, partial_sums, project
from ...kernels.decode.tiling.tile_trials import TileTrials
from ...kernels.decode.tiling.tiles import TargetTiles
from ...kernels.round.tree_rows import TreeRows
from ...kv_cache.cache import Cache
from ..family import TargetConfig
from ..rows_pass import RowBuffers, RowsPass
from .kernel_layers import Gemma4Experts, Gemma4KernelLayer, kernel_layers
from .modules import Gemma4, Gemma4DecoderLayer
from .tile_trials import target_trials


class Gemma4Buffers(RowBuffers):
    """``RowBuffers`` with those of the dense MLP and of the experts beside it, where there are some."""

    def __init__(self, config: TargetConfig, tiles: TargetTiles, dtype: torch.dtype, device: torch.device):
        super().__init__(config, tiles, dtype, device)
        hidden = config.hidden_size
        self.act = self.rows(config.intermediate_size)
        self.down = partial_sums(tiles.down, hidden, device)
        if config.moe is None:
            return
        experts, top_k = config.moe.num_experts, config.moe.top_k
        self.router_input, self.expert_input = self.rows(hidden), self.rows(hidden)
        self.splits = SplitScratch.allocate(tiles.router, experts, device)
        self.assignment = Assignment.allocate(experts, top_k, device, tiles.pairs)
        self.pair_act = self.rows(top_k, config.moe.intermediate_size).flatten(0, 1)
        self.pairs = self.rows(top_k, hidden)


class Gemma4DecodePass(RowsPass[Gemma4KernelLayer]):
    """A Gemma 4's pass of at most 16 rows, bound to one cache and to the tensors that say which rows run."""

    norm_style = "gemma"
    buffers_of = Gemma4Buffers
    _buffers: Gemma4Buffers
    _target: Gemma4

    def _read(self, cache: Cache) -> tuple[Tensor, Sequence[Gemma4KernelLayer]]:
        first = self._target.layers[0]
        assert isinstance(first, Gemma4DecoderLayer)
        return first.input_layernorm.weight, kernel_layers(self._target, cache)

    def trials(self) -> TileTrials[TargetTiles]:
        return target_trials(self._target, self._layers, self._tiles["bf16"])

    def _mix(self, layer: Gemma4KernelLayer, max_rows: int, tree: TreeRows | None) -> None:
        """Attends; leaves the residual behind attention, and that normed for what follows."""
        self._attend(layer, max_rows, tree)
        buffers = self._buffers
        after_attention(
            buffers.output, buffers.x, layer.attention_join, layer.head_norms.eps, buffers.normed,
            buffers.expert_input if layer.routed else None, buffers.router_input if layer.routed else None,
            tiles=self.tiles.rows, max_rows=max_rows,
        )  # fmt: skip

    def _feed_forward(self, layer: Gemma4KernelLayer, features: Tensor | None, max_rows: int) -> None:
        buffers, routed = self._buffers, layer.routed
        if routed is None:
            up_tiles = self._for(layer.gate_up).gate_up
            activation = self._target.config.activation
            gate_up(buffers.normed, layer.gate_up, buffers.act, activation, up_tiles, max_rows)
            project(buffers.act, layer.down, buffers.down, self._for(layer.down).down, max_rows)
        else:
            self._run_experts(layer, routed, max_rows)
        self._join(layer, features, max_rows)

    def _run_experts(self, layer: Gemma4KernelLayer, routed: Gemma4Experts, max_rows: int) -> None:
        """Runs the dense MLP and the experts beside it."""
        buffers, assignment = self._buffers, self._buffers.assignment
        self._route(layer, routed, routed.router.forced, assignment, max_rows)
        of_experts, act = self._for(routed.gate_up), buffers.pair_act
        up_tiles = of_experts.expert_gate_up_alone if max_rows == 1 else of_experts.expert_gate_up
        dense = self._dense_down(layer)
        expert_gate_up_rows(buffers.expert_input, routed.gate_up, assignment, act, up_tiles, dense, max_rows)
        expert_down_rows(act, routed.down, assignment, buffers.pairs, self._for(routed.down).expert_down, max_rows)

    def _route(
        self,
        layer: Gemma4KernelLayer,
        routed: Gemma4Experts,
        forced: Tensor | None,
        assignment: Assignment,
        max_rows: int,
    ) -> None:
        """Runs the dense MLP's first product and, beside it, the choice of experts."""
        buffers, router = self._buffers, routed.router
        weight, scale = router.proj.weight, router.per_expert_scale
        rows = RouterRows(buffers.router_input, weight, scale, forced, self.rows, assignment, self.tiles.router)
        up_tiles = self._for(layer.gate_up).gate_up
        gate_up_and_route(buffers.normed, layer.gate_up, buffers.act, up_tiles, rows, buffers.splits, max_rows)

    def _dense_down(self, layer: Gemma4KernelLayer) -> DenseDown:
        buffers = self._buffers
        return DenseDown(buffers.act, layer.down, buffers.down, self._for(layer.down).down)

    def _join(self, layer: Gemma4KernelLayer, features: Tensor | None, max_rows: int) -> None:
        """Adds the outputs of MLP and experts to the residual, and norms for the next layer."""
        buffers = self._buffers
        after_feed_forward(
            buffers.down, buffers.pairs if layer.routed else None, buffers.x, layer.feed_forward_join,
            layer.head_norms.eps, buffers.normed, features,
            tiles=self.tiles.rows, max_rows=max_rows,
        )  # fmt: skip
