"""The products of a target's decode pass, launched with any tiles, over the layers' own weights."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ...kernels.decode.products.dense import gate_up
from ...kernels.decode.tiling.target_tiles import bits_of
from ...kernels.decode.tiling.tile_trials import Launch, TileTrial, TileTrials
from ...kernels.decode.tiling.tiles import TargetTiles
from ..product_launches import ProductLaunches, WithBias
from ..target import TargetModel
from .kernel_layers import AttendingMixer, Qwen35KernelLayer


def target_trials(
    target: TargetModel, layers: Sequence[Qwen35KernelLayer], now: TargetTiles
) -> TileTrials[TargetTiles]:
    """The products in this target's format, by field of its tiles; ``now`` are tiles that it could have."""
    of = _Qwen35Launches(target, layers)
    bits, packed = bits_of(of.packed), of.packed != "bf16"
    trials: TileTrials[TargetTiles] = {
        "head": TileTrial(of.head),
        "qkv": TileTrial(of.qkv, 1, bits, packed),
        "output": TileTrial(of.output, 1, bits, packed, splits=True),
        "gate_up": TileTrial(of.gate_up, 2, bits, packed),
        "down": TileTrial(of.down, 1, bits, packed, splits=True),
    }
    return {name: trial for name, trial in trials.items() if trial.launches(now)}


class _Qwen35Launches(ProductLaunches[Qwen35KernelLayer]):
    def _around_mixing(self) -> list[tuple[WithBias, WithBias]]:
        mixers = [layer.mixer for layer in self._layers]
        before = [mixer.qkv if isinstance(mixer, AttendingMixer) else mixer.rows for mixer in mixers]
        return [((first, None), (mixer.output, None)) for first, mixer in zip(before, mixers, strict=True)]

    def gate_up(self, tiles: TargetTiles) -> list[Launch]:
        act = self._rows(self._target.config.intermediate_size)
        return [
            partial(gate_up, self._normed, layer.gate_up, act, "silu", tiles.gate_up)
            for layer in self._layers
            if layer.routed is None and self._is_packed(layer.gate_up)
        ]

    def down(self, tiles: TargetTiles) -> list[Launch]:
        dense = [(layer.down, None) for layer in self._layers if layer.routed is None]
        return self._products(dense, tiles.down, split=True) if dense else []
