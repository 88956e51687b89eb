"""The target's pass of at most 16 rows as kernel launches, for decoding rounds; ``modules.PreNormTarget`` defines it. A
layer has seven launches besides attention's own; its last two products leave their sums to the norm behind them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ...kernels.decode.experts.experts import expert_down_rows, expert_gate_up_rows
from ...kernels.decode.experts.router import Assignment, RouterRows, SplitScratch, route_rows
from ...kernels.decode.norm import add_and_norm
from ...kernels.decode.products.dense import gate_up, partial_sums, project
from ...kernels.decode.tiling.tile_trials import TileTrials
from ...kernels.decode.tiling.tiles import TargetTiles
from ...kernels.round.tree_rows import TreeRows
from ...kv_cache.cache import Cache
from ..family import TargetConfig
from ..rows_pass import RowBuffers, RowsPass
from .kernel_layers import PreNormExperts, PreNormKernelLayer, kernel_layers, layers_of
from .modules import PreNormTarget
from .tile_trials import target_trials


class PreNormBuffers(RowBuffers):
    """``RowBuffers`` with those of the MLP, or of the experts."""

    def __init__(self, config: TargetConfig, tiles: TargetTiles, dtype: torch.dtype, device: torch.device):
        super().__init__(config, tiles, dtype, device)
        if config.moe is None:
            self.act = self.rows(config.intermediate_size)
            self.down = partial_sums(tiles.down, config.hidden_size, device)
            return
        experts, top_k = config.moe.num_experts, config.moe.top_k
        self.splits = SplitScratch.allocate(tiles.router, experts, device)
        self.assignment = Assignment.allocate(experts, top_k, device, tiles.pairs)
        self.act = self.rows(top_k, config.moe.intermediate_size).flatten(0, 1)
        self.pairs = self.rows(top_k, config.hidden_size)
        self.down = self.pairs.transpose(0, 1)
        """[top_k, 16, hidden]: the pairs' outputs, to be added like the splits of a product."""


class PreNormDecodePass(RowsPass[PreNormKernelLayer]):
    """A pre-norm decoder's pass of at most 16 rows, bound to one cache and to the tensors that say which rows run."""

    buffers_of = PreNormBuffers
    _buffers: PreNormBuffers
    _target: PreNormTarget

    def _read(self, cache: Cache) -> tuple[Tensor, Sequence[PreNormKernelLayer]]:
        self.norm_style = self._target.config.norm_style
        return layers_of(self._target)[0].input_layernorm.weight, kernel_layers(self._target, cache)

    def trials(self) -> TileTrials[TargetTiles]:
        return target_trials(self._target, self._layers, self._tiles["bf16"])

    def _mix(self, layer: PreNormKernelLayer, max_rows: int, tree: TreeRows | None) -> None:
        self._attend(layer, max_rows, tree)
        buffers = self._buffers
        add_and_norm(
            buffers.output, buffers.x, layer.middle_norm, layer.head_norms.eps, buffers.normed, self.norm_style,
            tiles=self.tiles.rows, max_rows=max_rows,
        )  # fmt: skip

    def _feed_forward(self, layer: PreNormKernelLayer, features: Tensor | None, max_rows: int) -> None:
        buffers = self._buffers
        if layer.routed is None:
            up_tiles, down_tiles = self._for(layer.gate_up).gate_up, self._for(layer.down).down
            activation = self._target.config.activation
            gate_up(buffers.normed, layer.gate_up, buffers.act, activation, up_tiles, max_rows)
            project(buffers.act, layer.down, buffers.down, down_tiles, max_rows)
        else:
            self._run_experts(layer, layer.routed, max_rows)
        add_and_norm(
            buffers.down, buffers.x, layer.next_norm, layer.head_norms.eps, buffers.normed, self.norm_style, features,
            tiles=self.tiles.rows, max_rows=max_rows,
        )  # fmt: skip

    def _run_experts(self, layer: PreNormKernelLayer, routed: PreNormExperts, max_rows: int) -> None:
        buffers, assignment, router = self._buffers, self._buffers.assignment, routed.router
        rows = RouterRows(
            buffers.normed, router.weight, None, router.forced, self.rows, assignment, self.tiles.router, router.bias
        )
        route_rows(rows, buffers.splits, max_rows)
        tiles = self._for(layer.gate_up)
        up_tiles = tiles.expert_gate_up_alone if max_rows == 1 else tiles.expert_gate_up
        activation = self._target.config.activation
        expert_gate_up_rows(
            buffers.normed, layer.gate_up, assignment, buffers.act, up_tiles, None, max_rows, activation,
            routed.gate_up_bias,
        )  # fmt: skip
        down_tiles = self._for(layer.down).expert_down
        expert_down_rows(buffers.act, layer.down, assignment, buffers.pairs, down_tiles, max_rows, routed.down_bias)
