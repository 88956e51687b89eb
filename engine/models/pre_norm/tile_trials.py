"""Launches the products of a target's decode pass with any tiles, over the layers' own weights, to time them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ...kernels.decode.experts.experts import expert_gate_up_rows
from ...kernels.decode.products.dense import gate_up
from ...kernels.decode.tiling.target_tiles import bits_of, plain_choices
from ...kernels.decode.tiling.tile_trials import Launch, TileTrial, TileTrials
from ...kernels.decode.tiling.tiles import TargetTiles
from ..product_launches import ProductLaunches, WithBias, around_attention
from ..target import TargetModel
from .kernel_layers import PreNormKernelLayer


def target_trials(
    target: TargetModel, layers: Sequence[PreNormKernelLayer], now: TargetTiles
) -> TileTrials[TargetTiles]:
    """The products in this target's format, by field of its tiles; ``now`` are tiles that it could have."""
    of = _PreNormLaunches(target, layers)
    bits, packed = bits_of(of.packed), of.packed != "bf16"
    of_attention = (16, False) if "qkv" in plain_choices(of.packed) else (bits, packed)
    trials: TileTrials[TargetTiles] = {
        "head": TileTrial(of.head),
        "qkv": TileTrial(of.qkv, 1, *of_attention),
        "output": TileTrial(of.output, 1, *of_attention, splits=True),
    }
    if target.config.moe is None:
        trials["gate_up"] = TileTrial(of.gate_up, 2, bits, packed)
        trials["down"] = TileTrial(of.down, 1, bits, packed, splits=True)
    else:
        trials |= of.expert_trials(of.expert_gate_up, of.expert_down)
    return {name: trial for name, trial in trials.items() if trial.launches(now)}


class _PreNormLaunches(ProductLaunches[PreNormKernelLayer]):
    def _around_mixing(self) -> list[tuple[WithBias, WithBias]]:
        return around_attention(self._layers)

    def gate_up(self, tiles: TargetTiles) -> list[Launch]:
        act, kind = self._rows(self._target.config.intermediate_size), self._target.config.activation
        return [
            partial(gate_up, self._normed, layer.gate_up, act, kind, tiles.gate_up)
            for layer in self._layers
            if self._is_packed(layer.gate_up)
        ]

    def down(self, tiles: TargetTiles) -> list[Launch]:
        return self._products([(layer.down, None) for layer in self._layers], tiles.down, split=True)

    def expert_gate_up(self, tiles: TargetTiles, rows: int) -> list[Launch]:
        moe, assignment = self._moe, self._drawn(rows, tiles)
        chosen = tiles.expert_gate_up_alone if rows == 1 else tiles.expert_gate_up
        out = self._rows(moe.top_k, moe.intermediate_size).flatten(0, 1)
        kind = self._target.config.activation
        return [
            partial(
                expert_gate_up_rows,
                self._normed,
                layer.gate_up,
                assignment,
                out,
                chosen,
                None,
                rows,
                kind,
                None if layer.routed is None else layer.routed.gate_up_bias,
            )
            for layer in self._layers
            if self._is_packed(layer.gate_up)
        ]

    def expert_down(self, tiles: TargetTiles) -> list[Launch]:
        biases = [None if layer.routed is None else layer.routed.down_bias for layer in self._layers]
        return self._expert_downs([(layer.down, bias) for layer, bias in zip(self._layers, biases, strict=True)], tiles)
