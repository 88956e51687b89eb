"""Launches the products of a target's decode pass with any tiles, over the layers' own weights, to time them where the
memory is full of a model. This is what families have in common; each has the rest in its folder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

import torch
from torch import Tensor

from ..kernels.decode.experts.experts import expert_down_rows
from ..kernels.decode.experts.router import Assignment, reference_assignment
from ..kernels.decode.products.dense import partial_sums, project
from ..kernels.decode.products.head import HeadOutput, head_rows
from ..kernels.decode.tiling.target_tiles import bits_of, plain_choices
from ..kernels.decode.tiling.tile_trials import Launch, TileTrial, TileTrials
from ..kernels.decode.tiling.tiles import TargetTiles, Tiles
from ..kernels.toolchain.jit import MAX_ROWS
from ..kernels.weights.kinds import format_of
from ..kernels.weights.plain import PlainWeight
from ..kernels.weights.weight import Weight
from ..layer_config import MoeConfig
from .packed import format_of_target
from .rows_pass import AttendingLayer
from .target import TargetModel

Layer = TypeVar("Layer")
WithBias = tuple[Weight, Tensor | None]


def around_attention(layers: Sequence[AttendingLayer]) -> list[tuple[WithBias, WithBias]]:
    """The weights and biases before and behind attention, layer by layer: ``_around_mixing`` where all layers
    attend."""
    return [((layer.qkv, layer.added.qkv), (layer.output, layer.added.output)) for layer in layers]


class ProductLaunches(ABC, Generic[Layer]):
    """Launches products with rows of zeros, which take as long as any others."""

    def __init__(self, target: TargetModel, layers: Sequence[Layer]):
        self._target, self._layers, self._device = target, layers, target.device
        self.packed = format_of_target(target)
        self._normed = self._rows(target.config.hidden_size)

    @abstractmethod
    def _around_mixing(self) -> list[tuple[WithBias, WithBias]]:
        """The weights of each layer before its rows are mixed, and behind."""

    def qkv(self, tiles: TargetTiles) -> list[Launch]:
        return self._products([before for before, _ in self._around_mixing()], tiles.qkv, split=False)

    def output(self, tiles: TargetTiles) -> list[Launch]:
        return self._products([behind for _, behind in self._around_mixing()], tiles.output, split=True)

    def head(self, tiles: TargetTiles) -> list[Launch]:
        config, weight = self._target.config, PlainWeight(self._target.head)
        out = HeadOutput.allocate(config.vocab_size, tiles.head, self._device)
        return [partial(head_rows, self._normed, weight, config.logit_softcap, out, tiles.head)]

    def _expert_downs(self, weights: Sequence[WithBias], tiles: TargetTiles) -> list[Launch]:
        moe = self._moe
        act, out = self._rows(moe.top_k, moe.intermediate_size), self._rows(moe.top_k, self._target.config.hidden_size)
        assignment = self._drawn(MAX_ROWS, tiles)
        return [
            partial(expert_down_rows, act.flatten(0, 1), weight, assignment, out, tiles.expert_down, bias=bias)
            for weight, bias in weights
            if self._is_packed(weight)
        ]

    def expert_trials(
        self, gate_up: Callable[[TargetTiles, int], list[Launch]], down: Callable[[TargetTiles], list[Launch]]
    ) -> TileTrials[TargetTiles]:
        """How to try tiles for the two products of experts, given their launches, ``gate_up``'s for a number of rows. A
        single row must have the bits that it has among sixteen: so its steps have the same depth, and with packed
        weights its programs the same number of warps."""
        bits, packed = bits_of(self.packed), self.packed != "bf16"
        return {
            "expert_gate_up": TileTrial(lambda tiles: gate_up(tiles, MAX_ROWS), 2, bits, packed, shares=True),
            "expert_down": TileTrial(down, 1, bits, packed, shares=True),
            "expert_gate_up_alone": TileTrial(
                lambda tiles: gate_up(tiles, 1), 2, bits, packed, depth=False, warps=not packed, shares=True
            ),
        }

    def _products(self, weights: Sequence[WithBias], tiles: Tiles, split: bool) -> list[Launch]:
        weights = [(weight, bias) for weight, bias in weights if self._is_packed(weight)]
        inputs = {depth: self._rows(depth) for depth in {weight.shape[1] for weight, _ in weights}}
        outs = {
            columns: partial_sums(tiles, columns, self._device) if split else self._rows(columns)
            for columns in {weight.shape[0] for weight, _ in weights}
        }
        return [
            partial(project, inputs[weight.shape[1]], weight, outs[weight.shape[0]], tiles, bias=bias)
            for weight, bias in weights
        ]

    def _rows(self, *shape: int) -> Tensor:
        return torch.zeros(MAX_ROWS, *shape, dtype=self._target.dtype, device=self._device)

    def _is_packed(self, weight: Weight) -> bool:
        """Whether the tiles being timed are those of this weight: those for the target's format, or for all of its
        weights."""
        return format_of(weight) == self.packed or "qkv" in plain_choices(self.packed)

    @property
    def _moe(self) -> MoeConfig:
        assert self._target.config.moe is not None
        return self._target.config.moe

    def _drawn(self, rows: int, tiles: TargetTiles) -> Assignment:
        moe = self._moe
        scores = torch.rand(rows, moe.num_experts, generator=torch.Generator().manual_seed(0))
        return reference_assignment(scores, moe.top_k, most=tiles.pairs).to(self._device)
