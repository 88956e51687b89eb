"""The target's pass of at most 16 rows as kernel launches, for decoding rounds; ``modules.Qwen35Target`` defines it.
It begins by taking what the round before accepted into the layers' states: no host says how much that is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from ...kernels.decode.products.dense import Product, partial_sums, project, project_two
from ...kernels.decode.recurrent.delta import (
    Lineage,
    Projected,
    StateTable,
    fold,
    prepare_rows,
    scan_rows,
    take_by_kernels,
)
from ...kernels.decode.recurrent.gates import norm_and_gate
from ...kernels.decode.tiling.tile_trials import TileTrials
from ...kernels.decode.tiling.tiles import TargetTiles, Tiles
from ...kernels.round.accept import AcceptedPath
from ...kernels.round.lineage import keep_path, trace
from ...kernels.round.tree_rows import TreeRows
from ...kernels.toolchain.jit import MAX_ROWS, cdiv
from ...kv_cache.cache import Cache
from ...layer_config import DeltaConfig
from ..family import TargetConfig
from ..rows_pass import RowsPass
from .gated_layers import GatedBuffers, GatedLayers
from .kernel_layers import AttendingMixer, Qwen35KernelLayer, RecurringMixer, kernel_layers, layers_of
from .modules import Qwen35Target
from .tile_trials import target_trials

RATES_DEPTH = 256


def rates_tiles(hidden: int) -> Tiles:
    """The tiles of the product that says how much rows learn and forget. It has few columns, so each program takes one
    step of its depth."""
    return Tiles(columns=32, depth=RATES_DEPTH, splits=cdiv(hidden, RATES_DEPTH), stages=2)


class Qwen35Buffers(GatedBuffers):
    """``GatedBuffers`` with those of layers that recur."""

    def __init__(self, config: TargetConfig, tiles: TargetTiles, dtype: torch.dtype, device: torch.device):
        super().__init__(config, tiles, dtype, device)
        hidden = config.hidden_size
        recurring = next(each for each in config.layers if isinstance(each, DeltaConfig))
        self.projected = Projected(
            self.rows(recurring.channels + recurring.values),
            partial_sums(rates_tiles(hidden), 2 * recurring.num_value_heads, device),
        )
        wide = partial(torch.zeros, dtype=torch.float32, device=device)
        self.q = wide(MAX_ROWS, recurring.num_key_heads, recurring.key_dim)
        self.read = wide(MAX_ROWS, recurring.num_value_heads, recurring.value_dim)
        self.values = self.rows(recurring.values)


class Qwen35DecodePass(GatedLayers, RowsPass[Qwen35KernelLayer]):
    """A Qwen3.5's pass of at most 16 rows, bound to one cache and to the tensors that say which rows run."""

    buffers_of = Qwen35Buffers
    _buffers: Qwen35Buffers
    _target: Qwen35Target

    def _read(self, cache: Cache) -> tuple[Tensor, Sequence[Qwen35KernelLayer]]:
        """The weight of the first norm, and the layers. From now on kernels alone take the cache's states further."""
        target, layers = self._target, kernel_layers(self._target, cache)
        recurring = [layer.mixer for layer in layers if isinstance(layer.mixer, RecurringMixer)]
        config = recurring[0].config
        for mixer in recurring:
            mixer.state.take = partial(take_by_kernels, config)
        self._states = StateTable([mixer.state for mixer in recurring], config)
        self._rates_tiles = rates_tiles(target.config.hidden_size)
        self._lineage = Lineage.allocate(config, target.device) if target.config.moe is None else None
        return layers_of(target)[0].input_layernorm.scales, layers

    def forward(self, max_rows: int = MAX_ROWS, beside: bool = False, tree: TreeRows | None = None) -> None:
        fold(self._states, self.cursor, self.rows)
        if tree is not None:
            assert self._lineage is not None
            trace(tree, self.rows, self._lineage)
        super().forward(max_rows, beside, tree)

    def keep_path(self, path: AcceptedPath) -> None:
        keep_path(self._states, path)

    def trials(self) -> TileTrials[TargetTiles]:
        return target_trials(self._target, self._layers, self._tiles["bf16"])

    def _run_mixer(self, mixer: AttendingMixer | RecurringMixer, max_rows: int, tree: TreeRows | None) -> None:
        if isinstance(mixer, RecurringMixer):
            self._recur(mixer, max_rows, None if tree is None else self._lineage)
        else:
            super()._run_mixer(mixer, max_rows, tree)

    def _recur(self, mixer: RecurringMixer, max_rows: int, tree: Lineage | None) -> None:
        buffers, config, state, projected = self._buffers, mixer.config, mixer.state, self._buffers.projected
        rates = Product(mixer.rates, projected.rates, self._rates_tiles)
        project_two(buffers.normed, rates, Product(mixer.rows, projected.rows, self._for(mixer.rows).qkv), max_rows)
        prepare_rows(
            projected, state.now.window, mixer.weights, config, buffers.q, state.rows, state.at, self.cursor, self.rows,
            max_rows, tree,
        )  # fmt: skip
        scan_rows(state.now.recurrent, buffers.q, state.rows, buffers.read, self.rows, config, writes=False, tree=tree)
        eps = self._config.rms_norm_eps
        norm_and_gate(buffers.read, mixer.norm, eps, projected, buffers.values, config, max_rows)
        project(buffers.values, mixer.output, buffers.output, self._for(mixer.output).output, max_rows)
