"""What the passes of the target and of the layer that drafts share: gated attention, and the feed-forward part, as
kernel launches of at most 16 rows."""

from __future__ import annotations

import torch
from torch import Tensor

from ...kernels.decode.experts.experts import DenseDown, expert_down_rows, expert_gate_up_rows
from ...kernels.decode.experts.router import Assignment, RouterRows, SplitScratch, gate_up_and_route
from ...kernels.decode.experts.shared_expert import after_experts
from ...kernels.decode.norm import add_and_norm
from ...kernels.decode.products.dense import gate_up, partial_sums, project
from ...kernels.decode.recurrent.gates import gate_heads
from ...kernels.decode.tiling.tiles import TargetTiles
from ...kernels.round.tree_rows import TreeRows
from ..family import TargetConfig
from ..rows_pass import LayerLaunches, RowBuffers
from .kernel_layers import AttendingMixer, Qwen35KernelLayer, RecurringMixer, Routed


class GatedBuffers(RowBuffers):
    """``RowBuffers`` with those of gated heads, of the MLP, and of experts."""

    def __init__(self, config: TargetConfig, tiles: TargetTiles, dtype: torch.dtype, device: torch.device):
        super().__init__(config, tiles, dtype, device)
        hidden = config.hidden_size
        self.act = self.rows(config.intermediate_size)
        self.down = partial_sums(tiles.down, hidden, device)
        """The partial sums of the second product of the MLP, or of the expert that all rows share."""
        if config.moe is not None:
            experts, top_k = config.moe.num_experts, config.moe.top_k
            self.splits = SplitScratch.allocate(tiles.router, experts, device)
            self.assignment = Assignment.allocate(experts, top_k, device, tiles.pairs)
            self.expert_act = self.rows(top_k, config.moe.intermediate_size).flatten(0, 1)
            self.pairs = self.rows(top_k, hidden)
        layer = config.attention[0]
        columns = layer.num_heads * layer.head_dim
        self.gated = self.rows(2 * columns + 2 * layer.num_kv_heads * layer.head_dim)
        """[16, columns]: gates, queries, keys and values side by side."""
        self.gated_mixed = self.rows(columns)


class GatedLayers(LayerLaunches[Qwen35KernelLayer]):
    """Launches of layers whose attention is gated, and of any layer's feed-forward part."""

    norm_style = "gemma"
    buffers_of = GatedBuffers
    _buffers: GatedBuffers

    def _mix(self, layer: Qwen35KernelLayer, max_rows: int, tree: TreeRows | None) -> None:
        buffers = self._buffers
        self._run_mixer(layer.mixer, max_rows, tree)
        add_and_norm(
            buffers.output, buffers.x, layer.middle_norm, self._config.rms_norm_eps, buffers.normed,
            self.norm_style,
            tiles=self.tiles.rows, max_rows=max_rows,
        )  # fmt: skip

    def _run_mixer(self, mixer: AttendingMixer | RecurringMixer, max_rows: int, tree: TreeRows | None) -> None:
        """Goes from the normed residual to the partial sums of what the mixer adds to it."""
        assert isinstance(mixer, AttendingMixer)
        buffers, columns = self._buffers, mixer.columns
        project(buffers.normed, mixer.qkv, buffers.gated, self._for(mixer.qkv).qkv, max_rows)
        mixed = buffers.mixed[mixer.config]
        self._attend_projected(mixer, buffers.gated[:, columns:], mixed, max_rows, tree)
        gate_heads(mixed, buffers.gated, buffers.gated_mixed, mixer.config.head_dim, max_rows)
        project(buffers.gated_mixed, mixer.output, buffers.output, self._for(mixer.output).output, max_rows)

    def _feed_forward(self, layer: Qwen35KernelLayer, features: Tensor | None, max_rows: int) -> None:
        buffers, eps = self._buffers, self._config.rms_norm_eps
        if layer.routed is None:
            gate_up(buffers.normed, layer.gate_up, buffers.act, "silu", self._for(layer.gate_up).gate_up, max_rows)
            project(buffers.act, layer.down, buffers.down, self._for(layer.down).down, max_rows)
            add_and_norm(
                buffers.down, buffers.x, layer.next_norm, eps, buffers.normed, self.norm_style, features,
                tiles=self.tiles.rows, max_rows=max_rows,
            )  # fmt: skip
            return
        self._run_experts(layer, layer.routed, max_rows)
        after_experts(
            buffers.down, buffers.pairs, layer.routed.gate, buffers.x, layer.next_norm, eps, buffers.normed,
            self.norm_style, features,
            tiles=self.tiles.rows, max_rows=max_rows,
        )  # fmt: skip

    def _run_experts(self, layer: Qwen35KernelLayer, routed: Routed, max_rows: int) -> None:
        """Runs the experts and, beside their choice and their first product, the one that all rows share."""
        buffers, router, assignment = self._buffers, routed.router, self._buffers.assignment
        rows = RouterRows(
            buffers.normed, router.weight, None, router.forced, self.rows, assignment, self.tiles.router, router.bias
        )
        first_tiles = self._for(routed.gate_up).gate_up
        gate_up_and_route(
            buffers.normed, routed.gate_up, buffers.act, first_tiles, rows, buffers.splits, max_rows, "silu"
        )
        tiles = self._for(layer.gate_up)
        up_tiles = tiles.expert_gate_up_alone if max_rows == 1 else tiles.expert_gate_up
        shared = DenseDown(buffers.act, routed.down, buffers.down, self._for(routed.down).down)
        act = buffers.expert_act
        expert_gate_up_rows(buffers.normed, layer.gate_up, assignment, act, up_tiles, shared, max_rows, "silu")
        expert_down_rows(act, layer.down, assignment, buffers.pairs, self._for(layer.down).expert_down, max_rows)
