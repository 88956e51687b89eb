"""The target's pass of at most 16 rows as kernel launches, for decoding rounds; ``modules.Qwen35Target`` defines it.
It begins by taking what the round before accepted into the layers' states: no host says how much that is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from ...kernels.decode.delta import (
    Projected,
    StateTable,
    fold,
    gate_heads,
    norm_and_gate,
    prepare_rows,
    scan_rows,
    take_by_kernels,
)
from ...kernels.decode.dense import Product, gate_up, partial_sums, project, project_two
from ...kernels.decode.experts import DenseDown, expert_down_rows, expert_gate_up_rows
from ...kernels.decode.norm import add_and_norm
from ...kernels.decode.router import Assignment, RouterRows, SplitScratch, gate_up_and_route
from ...kernels.decode.shared_expert import after_experts
from ...kernels.decode.tile_trials import TileTrials
from ...kernels.decode.tiles import TargetTiles, Tiles
from ...kernels.round.tree_rows import TreeRows
from ...kernels.toolchain.jit import MAX_ROWS, cdiv
from ...kv_cache.cache import Cache
from ...layer_config import DeltaConfig
from ..family import TargetConfig
from ..rows_pass import RowBuffers, RowsPass
from .kernel_layers import AttendingMixer, KernelLayer, RecurringMixer, Routed, kernel_layers, layers_of
from .modules import Qwen35Target
from .tile_trials import target_trials

RATES_DEPTH = 256


def rates_tiles(hidden: int) -> Tiles:
    """Of the product that says how much is learnt and forgotten, which has few columns: a step for each program."""
    return Tiles(columns=32, depth=RATES_DEPTH, splits=cdiv(hidden, RATES_DEPTH), stages=2)


class _Buffers(RowBuffers):
    """With those of the MLP, of gated heads, and of layers that recur."""

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
        recurring = next(each for each in config.layers if isinstance(each, DeltaConfig))
        self.projected = Projected(
            self.rows(recurring.channels + recurring.values),
            partial_sums(rates_tiles(hidden), 2 * recurring.num_value_heads, device),
        )
        wide = partial(torch.zeros, dtype=torch.float32, device=device)
        self.q = wide(MAX_ROWS, recurring.num_key_heads, recurring.key_dim)
        self.read = wide(MAX_ROWS, recurring.num_value_heads, recurring.value_dim)
        self.values = self.rows(recurring.values)


class DecodePass(RowsPass[KernelLayer]):
    """The forward pass, bound to one cache and to the tensors that say which rows run."""

    norm_style = "gemma"
    buffers_of = _Buffers
    _buffers: _Buffers
    _target: Qwen35Target

    def __init__(
        self,
        target: Qwen35Target,
        cache: Cache,
        cursor: Tensor,
        rows: Tensor,
        taps: Sequence[int] = (),
        tiles: TargetTiles | None = None,
    ):
        """As ``RowsPass`` says. Merges the target's weights in place; the cache's states are from now on taken further
        by kernels alone."""
        first_norm, layers = layers_of(target)[0].input_layernorm.scales, kernel_layers(target, cache)
        super().__init__(target, first_norm, layers, cache, cursor, rows, taps, tiles)
        recurring = [layer.mixer for layer in layers if isinstance(layer.mixer, RecurringMixer)]
        config = recurring[0].config
        for mixer in recurring:
            mixer.state.take = partial(take_by_kernels, config)
        self._states = StateTable([mixer.state for mixer in recurring], config)
        self._rates_tiles = rates_tiles(target.config.hidden_size)

    def forward(self, max_rows: int = MAX_ROWS, beside: bool = False, tree: TreeRows | None = None) -> None:
        assert tree is None, "a state has one path"
        fold(self._states, self.cursor, self.rows)
        super().forward(max_rows, beside)

    def trials(self) -> TileTrials[TargetTiles]:
        return target_trials(self._target, self._layers, self._tiles["bf16"])

    def _mix(self, layer: KernelLayer, max_rows: int, tree: TreeRows | None) -> None:
        buffers, mixer = self._buffers, layer.mixer
        if isinstance(mixer, RecurringMixer):
            self._recur(mixer, max_rows)
        else:
            self._attend_gated(mixer, max_rows)
        add_and_norm(
            buffers.output, buffers.x, layer.middle_norm, self._target.config.rms_norm_eps, buffers.normed,
            self.norm_style,
            tiles=self.tiles.rows, max_rows=max_rows,
        )  # fmt: skip

    def _attend_gated(self, mixer: AttendingMixer, max_rows: int) -> None:
        buffers, columns = self._buffers, mixer.columns
        project(buffers.normed, mixer.qkv, buffers.gated, self._for(mixer.qkv).qkv, max_rows)
        mixed = buffers.mixed[mixer.config]
        self._attend_projected(mixer, buffers.gated[:, columns:], mixed, max_rows)
        gate_heads(mixed, buffers.gated, buffers.gated_mixed, mixer.config.head_dim, max_rows)
        project(buffers.gated_mixed, mixer.output, buffers.output, self._for(mixer.output).output, max_rows)

    def _recur(self, mixer: RecurringMixer, max_rows: int) -> None:
        buffers, config, state, projected = self._buffers, mixer.config, mixer.state, self._buffers.projected
        rates = Product(mixer.rates, projected.rates, self._rates_tiles)
        project_two(buffers.normed, rates, Product(mixer.rows, projected.rows, self._for(mixer.rows).qkv), max_rows)
        prepare_rows(
            projected, state.now.window, mixer.weights, config, buffers.q, state.rows, state.at, self.cursor, self.rows,
            max_rows,
        )  # fmt: skip
        scan_rows(state.now.recurrent, buffers.q, state.rows, buffers.read, self.rows, config, writes=False)
        eps = self._target.config.rms_norm_eps
        norm_and_gate(buffers.read, mixer.norm, eps, projected, buffers.values, config, max_rows)
        project(buffers.values, mixer.output, buffers.output, self._for(mixer.output).output, max_rows)

    def _feed_forward(self, layer: KernelLayer, features: Tensor | None, max_rows: int) -> None:
        buffers, eps = self._buffers, self._target.config.rms_norm_eps
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

    def _run_experts(self, layer: KernelLayer, routed: Routed, max_rows: int) -> None:
        """Runs the experts and, beside their choice and their first product, the one that all rows share."""
        buffers, router, found = self._buffers, routed.router, self._buffers.assignment
        rows = RouterRows(
            buffers.normed, router.weight, None, router.forced, self.rows, found, self.tiles.router, router.bias
        )
        first_tiles = self._for(routed.gate_up).gate_up
        gate_up_and_route(
            buffers.normed, routed.gate_up, buffers.act, first_tiles, rows, buffers.splits, max_rows, "silu"
        )
        tiles = self._for(layer.gate_up)
        up_tiles = tiles.expert_gate_up_alone if max_rows == 1 else tiles.expert_gate_up
        shared = DenseDown(buffers.act, routed.down, buffers.down, self._for(routed.down).down)
        act = buffers.expert_act
        expert_gate_up_rows(buffers.normed, layer.gate_up, found, act, up_tiles, shared, max_rows, "silu")
        expert_down_rows(act, layer.down, found, buffers.pairs, self._for(layer.down).expert_down, max_rows)
