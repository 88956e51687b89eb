"""What the passes of the target and of the layer that drafts share: gated attention, and the feed-forward part, as
kernel launches of at most 16 rows."""

from __future__ import annotations

import torch
from torch import Tensor

from ...kernels.decode.delta import gate_heads
from ...kernels.decode.dense import gate_up, partial_sums, project
from ...kernels.decode.experts import expert_down_rows, expert_gate_up_rows
from ...kernels.decode.norm import add_and_norm
from ...kernels.decode.router import Assignment, RouterRows, SplitScratch, route_rows
from ...kernels.decode.shared_expert import add_shared
from ...kernels.decode.tiles import TargetTiles
from ...kernels.round.tree_rows import TreeRows
from ...kernels.weights.weight import Weight
from ..family import TargetConfig
from ..rows_pass import LayerLaunches, RowBuffers
from .kernel_layers import AttendingMixer, KernelLayer, RecurringMixer, Routed


class GatedBuffers(RowBuffers):
    """With those of gated heads, of the MLP, and of experts."""

    def __init__(self, config: TargetConfig, tiles: TargetTiles, dtype: torch.dtype, device: torch.device):
        super().__init__(config, tiles, dtype, device)
        hidden = config.hidden_size
        self.act = self.rows(config.intermediate_size)
        self.down = partial_sums(tiles.down, hidden, device)
        """Of the MLP, or of the expert that all rows share."""
        if config.moe is not None:
            experts, top_k = config.moe.num_experts, config.moe.top_k
            self.splits = SplitScratch.allocate(tiles.router, experts, device)
            self.assignment = Assignment.allocate(experts, top_k, device, tiles.pairs)
            self.expert_act = self.rows(top_k, config.moe.intermediate_size).flatten(0, 1)
            self.pairs = self.rows(top_k, hidden)
        layer = config.attention[0]
        columns = layer.num_heads * layer.head_dim
        self.gated = self.rows(2 * columns + 2 * layer.num_kv_heads * layer.head_dim)
        """Gates, queries, keys, values."""
        self.gated_mixed = self.rows(columns)


class GatedLayers(LayerLaunches[KernelLayer]):
    """Layers that attend, and what is common to all."""

    norm_style = "gemma"
    buffers_of = GatedBuffers
    _buffers: GatedBuffers

    def _mix(self, layer: KernelLayer, max_rows: int, tree: TreeRows | None) -> None:
        buffers = self._buffers
        self._run_mixer(layer.mixer, max_rows)
        add_and_norm(
            buffers.output, buffers.x, layer.middle_norm, self._config.rms_norm_eps, buffers.normed,
            self.norm_style,
            tiles=self.tiles.rows, max_rows=max_rows,
        )  # fmt: skip

    def _run_mixer(self, mixer: AttendingMixer | RecurringMixer, max_rows: int) -> None:
        """Goes from the normed residual to the partial sums of what the mixer adds to it."""
        assert isinstance(mixer, AttendingMixer)
        buffers, columns = self._buffers, mixer.columns
        project(buffers.normed, mixer.qkv, buffers.gated, self._for(mixer.qkv).qkv, max_rows)
        mixed = buffers.mixed[mixer.config]
        self._attend_projected(mixer, buffers.gated[:, columns:], mixed, max_rows)
        gate_heads(mixed, buffers.gated, buffers.gated_mixed, mixer.config.head_dim, max_rows)
        project(buffers.gated_mixed, mixer.output, buffers.output, self._for(mixer.output).output, max_rows)

    def _feed_forward(self, layer: KernelLayer, features: Tensor | None, max_rows: int) -> None:
        buffers, found = self._buffers, self._buffers.down
        if layer.routed is None:
            self._run_mlp(layer.gate_up, layer.down, max_rows)
        else:
            self._run_mlp(layer.routed.gate_up, layer.routed.down, max_rows)
            add_shared(buffers.down, buffers.normed, layer.routed.gate, buffers.x, max_rows)
            found = self._run_experts(layer, layer.routed, max_rows)
        add_and_norm(
            found, buffers.x, layer.next_norm, self._config.rms_norm_eps, buffers.normed, self.norm_style,
            features,
            tiles=self.tiles.rows, max_rows=max_rows,
        )  # fmt: skip

    def _run_mlp(self, up: Weight, down: Weight, max_rows: int) -> None:
        buffers = self._buffers
        gate_up(buffers.normed, up, buffers.act, "silu", self._for(up).gate_up, max_rows)
        project(buffers.act, down, buffers.down, self._for(down).down, max_rows)

    def _run_experts(self, layer: KernelLayer, routed: Routed, max_rows: int) -> Tensor:
        """What they yield, [top_k, 16, hidden], to be added like the splits of a product."""
        buffers, router, found = self._buffers, routed.router, self._buffers.assignment
        rows = RouterRows(
            buffers.normed, router.weight, None, router.forced, self.rows, found, self.tiles.router, router.bias
        )
        route_rows(rows, buffers.splits, max_rows)
        tiles = self._for(layer.gate_up)
        up_tiles = tiles.expert_gate_up_alone if max_rows == 1 else tiles.expert_gate_up
        expert_gate_up_rows(buffers.normed, layer.gate_up, found, buffers.expert_act, up_tiles, None, max_rows, "silu")
        down_tiles = self._for(layer.down).expert_down
        expert_down_rows(buffers.expert_act, layer.down, found, buffers.pairs, down_tiles, max_rows)
        return buffers.pairs.transpose(0, 1)
