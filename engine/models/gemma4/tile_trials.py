"""Launches the products of a target's decode pass with any tiles, over the layers' own weights, to time them where the
memory is full of a model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from ...kernels.decode.experts.experts import DenseDown, expert_gate_up_rows
from ...kernels.decode.experts.router import Assignment, RouterRows, SplitScratch, gate_up_and_route
from ...kernels.decode.products.dense import gate_up, partial_sums
from ...kernels.decode.tiling.target_tiles import bits_of, target_tiles, with_splits_of
from ...kernels.decode.tiling.tile_trials import Launch, TileTrial, TileTrials
from ...kernels.decode.tiling.tiles import TargetTiles, Tiles
from ...kernels.toolchain.card import HOPPER
from ...kernels.toolchain.jit import MAX_ROWS
from ..product_launches import ProductLaunches, WithBias, around_attention
from .kernel_layers import Gemma4Experts, Gemma4KernelLayer
from .modules import Gemma4


def target_trials(target: Gemma4, layers: Sequence[Gemma4KernelLayer], plain: TargetTiles) -> TileTrials[TargetTiles]:
    """The products in this target's format, by field of its tiles. Experts are timed with choices drawn at random;
    ``plain`` are the tiles of what a packed target holds in bf16."""
    moe, of = target.config.moe, _Gemma4Launches(target, layers, plain)
    bits, packed = bits_of(of.packed), of.packed != "bf16"
    trials: TileTrials[TargetTiles] = {}
    if moe is not None:
        trials |= of.expert_trials(of.expert_gate_up, of.expert_down)
    trials["head"] = TileTrial(of.head)
    # Beside a router the rows of both have one layout only with steps of one depth.
    trials["gate_up"] = TileTrial(of.gate_up, 2, bits, packed, depth=moe is None)
    trials["qkv"] = TileTrial(of.qkv, 1, bits, packed)
    trials["output"] = TileTrial(of.output, 1, bits, packed, splits=True)
    if moe is None:
        trials["down"] = TileTrial(of.down, 1, bits, packed, splits=True)
    now = target_tiles(moe, HOPPER, of.packed, target.config.sizes)
    return {name: trial for name, trial in trials.items() if trial.launches(now)}


class _Gemma4Launches(ProductLaunches[Gemma4KernelLayer]):
    def _around_mixing(self) -> list[tuple[WithBias, WithBias]]:
        return around_attention(self._layers)

    def __init__(self, target: Gemma4, layers: Sequence[Gemma4KernelLayer], plain: TargetTiles):
        super().__init__(target, layers)
        self._plain = plain

    def down(self, tiles: TargetTiles) -> list[Launch]:
        return self._products([(layer.down, None) for layer in self._layers], tiles.down, split=True)

    def gate_up(self, tiles: TargetTiles) -> list[Launch]:
        layers = [layer for layer in self._layers if self._is_packed(layer.gate_up)]
        config = self._target.config
        act, moe, kind = self._rows(config.intermediate_size), config.moe, config.activation
        if moe is None:
            return [partial(gate_up, self._normed, layer.gate_up, act, kind, tiles.gate_up) for layer in layers]
        rows = torch.full((1,), MAX_ROWS, dtype=torch.int32, device=self._device)
        assignment = Assignment.allocate(moe.num_experts, moe.top_k, self._device, tiles.pairs)
        scratch = SplitScratch.allocate(tiles.router, moe.num_experts, self._device)
        return [
            partial(gate_up_and_route, self._normed, layer.gate_up, act, tiles.gate_up, router, scratch)
            for layer in layers
            if layer.routed is not None
            for router in [self._router(layer.routed, rows, assignment, tiles.router)]
        ]

    def expert_gate_up(self, tiles: TargetTiles, rows: int) -> list[Launch]:
        moe = self._moe
        chosen = tiles.expert_gate_up_alone if rows == 1 else tiles.expert_gate_up
        assignment, sums = (
            self._drawn(rows, tiles),
            partial_sums(tiles.down, self._target.config.hidden_size, self._device),
        )
        act, out = self._rows(self._target.config.intermediate_size), self._rows(moe.top_k, moe.intermediate_size)
        plain = with_splits_of(tiles, self._plain)
        return [
            partial(
                expert_gate_up_rows, self._normed, routed.gate_up, assignment, out.flatten(0, 1), chosen,
                DenseDown(act, layer.down, sums, tiles.down if self._is_packed(layer.down) else plain.down), rows,
            )
            for layer, routed in self._routed()
            if self._is_packed(routed.gate_up)
        ]  # fmt: skip

    def expert_down(self, tiles: TargetTiles) -> list[Launch]:
        return self._expert_downs([(routed.down, None) for _, routed in self._routed()], tiles)

    def _routed(self) -> list[tuple[Gemma4KernelLayer, Gemma4Experts]]:
        return [(layer, layer.routed) for layer in self._layers if layer.routed is not None]

    def _router(self, routed: Gemma4Experts, rows: Tensor, assignment: Assignment, tiles: Tiles) -> RouterRows:
        router = routed.router
        return RouterRows(self._normed, router.proj.weight, router.per_expert_scale, None, rows, assignment, tiles)
