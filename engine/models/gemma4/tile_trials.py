"""The products of a target's decode pass, launched with any tiles, over the layers' own weights: to time them where the
memory is full of a model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from ...kernels.decode.dense import gate_up, partial_sums, project
from ...kernels.decode.experts import DenseDown, expert_down_rows, expert_gate_up_rows
from ...kernels.decode.head import HeadOutput, head_rows
from ...kernels.decode.router import Assignment, RouterRows, SplitScratch, gate_up_and_route, reference_assignment
from ...kernels.decode.tiles import TargetTiles, Tiles
from ...kernels.decode.trials import Launch, Trial, Trials
from ...kernels.toolchain.jit import MAX_ROWS
from ...kernels.weights.plain import PlainWeight
from ...kernels.weights.weight import Weight
from ...layer_config import MoeConfig
from .kernel_layers import KernelLayer, RoutedExperts
from .modules import Gemma4


def target_trials(target: Gemma4, layers: Sequence[KernelLayer]) -> Trials[TargetTiles]:
    """Each choice that there is for this target. Experts are timed with choices drawn at random."""
    moe, first = target.config.moe, layers[0]
    of = _Launches(target, layers)
    found: Trials[TargetTiles] = {}
    if moe is not None and first.routed is not None:
        up, down = _bits(first.routed.gate_up), _bits(first.routed.down)
        found["expert_gate_up"] = Trial(partial(of.expert_gate_up, rows=MAX_ROWS), 2, up, shares=True)
        found["expert_down"] = Trial(of.expert_down, 1, down, shares=True)
        # Bits of a row alone must be those among sixteen, so its steps have the same depth.
        found["expert_gate_up_alone"] = Trial(partial(of.expert_gate_up, rows=1), 2, up, depth=False, shares=True)
    found["head"] = Trial(of.head)
    # Beside a router rows of the two lie alike only with steps of one depth.
    found["gate_up"] = Trial(of.gate_up, 2, _bits(first.gate_up), depth=moe is None)
    found["qkv"] = Trial(of.qkv, 1, _bits(first.qkv))
    found["output"] = Trial(of.output, 1, _bits(first.output), splits=True)
    if moe is None:
        found["down"] = Trial(of.down, 1, _bits(first.down), splits=True)
    return found


class _Launches:
    """Rows of nothing: what products compute takes no longer for it."""

    def __init__(self, target: Gemma4, layers: Sequence[KernelLayer]):
        self._target, self._layers, self._device = target, layers, target.device
        self._normed = self._rows(target.config.hidden_size)

    def _rows(self, *shape: int) -> Tensor:
        return torch.zeros(MAX_ROWS, *shape, dtype=self._target.dtype, device=self._device)

    def _sums(self, tiles: Tiles) -> Tensor:
        return partial_sums(tiles, self._target.config.hidden_size, self._device)

    def qkv(self, tiles: TargetTiles) -> list[Launch]:
        outs = {layer.qkv.shape[0]: self._rows(layer.qkv.shape[0]) for layer in self._layers}
        return [
            partial(project, self._normed, layer.qkv, outs[layer.qkv.shape[0]], tiles.qkv) for layer in self._layers
        ]

    def output(self, tiles: TargetTiles) -> list[Launch]:
        inputs = {layer.output.shape[1]: self._rows(layer.output.shape[1]) for layer in self._layers}
        sums = self._sums(tiles.output)
        return [
            partial(project, inputs[layer.output.shape[1]], layer.output, sums, tiles.output) for layer in self._layers
        ]

    def gate_up(self, tiles: TargetTiles) -> list[Launch]:
        act, moe = self._rows(self._target.config.intermediate_size), self._target.config.moe
        if moe is None:
            return [
                partial(gate_up, self._normed, layer.gate_up, act, "gelu_tanh", tiles.gate_up) for layer in self._layers
            ]
        rows = torch.full((1,), MAX_ROWS, dtype=torch.int32, device=self._device)
        found = Assignment.allocate(moe.num_experts, moe.top_k, self._device)
        scratch = SplitScratch.allocate(tiles.router, moe.num_experts, self._device)
        return [
            partial(gate_up_and_route, self._normed, layer.gate_up, act, tiles.gate_up, router, scratch)
            for layer, routed in self._routed()
            for router in [self._router(routed, rows, found, tiles.router)]
        ]

    def down(self, tiles: TargetTiles) -> list[Launch]:
        act, sums = self._rows(self._target.config.intermediate_size), self._sums(tiles.down)
        return [partial(project, act, layer.down, sums, tiles.down) for layer in self._layers]

    def expert_gate_up(self, tiles: TargetTiles, rows: int) -> list[Launch]:
        moe = self._moe
        chosen = tiles.expert_gate_up_alone if rows == 1 else tiles.expert_gate_up
        found, sums = self._drawn(rows), self._sums(tiles.down)
        act, out = self._rows(self._target.config.intermediate_size), self._rows(moe.top_k, moe.intermediate_size)
        return [
            partial(
                expert_gate_up_rows, self._normed, routed.gate_up, found, out.flatten(0, 1), chosen,
                DenseDown(act, layer.down, sums, tiles.down), rows,
            )
            for layer, routed in self._routed()
        ]  # fmt: skip

    def expert_down(self, tiles: TargetTiles) -> list[Launch]:
        moe = self._moe
        act, out = self._rows(moe.top_k, moe.intermediate_size), self._rows(moe.top_k, self._target.config.hidden_size)
        found = self._drawn(MAX_ROWS)
        return [
            partial(expert_down_rows, act.flatten(0, 1), routed.down, found, out, tiles.expert_down)
            for _, routed in self._routed()
        ]

    def head(self, tiles: TargetTiles) -> list[Launch]:
        config, weight = self._target.config, PlainWeight(self._target.head)
        out = HeadOutput.allocate(config.vocab_size, tiles.head, self._device)
        return [partial(head_rows, self._normed, weight, config.logit_softcap, out, tiles.head)]

    @property
    def _moe(self) -> MoeConfig:
        assert self._target.config.moe is not None
        return self._target.config.moe

    def _routed(self) -> list[tuple[KernelLayer, RoutedExperts]]:
        return [(layer, layer.routed) for layer in self._layers if layer.routed is not None]

    def _router(self, routed: RoutedExperts, rows: Tensor, found: Assignment, tiles: Tiles) -> RouterRows:
        router = routed.router
        return RouterRows(self._normed, router.proj.weight, router.per_expert_scale, None, rows, found, tiles)

    def _drawn(self, rows: int) -> Assignment:
        moe = self._moe
        scores = torch.rand(rows, moe.num_experts, generator=torch.Generator().manual_seed(0))
        drawn = reference_assignment(scores, moe.top_k, torch.ones(moe.num_experts))
        return Assignment(*(part.to(self._device) for part in (drawn.experts, drawn.pairs, drawn.weights)))


def _bits(weight: Weight) -> int:
    """Of a number, its part of the scales left out."""
    return 8 * weight.values.nbytes // weight.shape.numel()
