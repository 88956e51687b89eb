"""Lets the search for the fastest tiles launch each matrix product of DFlash's draft pass with the tiles that it wants
to time. Each family of targets has such a file for its decode pass."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from ...kernels.decode.products.dense import gate_up, partial_sums, project
from ...kernels.decode.products.head import HeadOutput, head_rows
from ...kernels.decode.tiling.tile_trials import Launch, TileTrial, TileTrials
from ...kernels.decode.tiling.tiles import DraftTiles, Tiles
from ...kernels.toolchain.jit import MAX_ROWS
from ...kernels.weights.weight import Weight
from .weights import DraftWeights


def draft_trials(
    weights: DraftWeights, head: Weight, softcap: float | None, dtype: torch.dtype
) -> TileTrials[DraftTiles]:
    """The products of a drafter with these weights, by field of its tiles."""
    device, layers = head.values.device, weights.layers

    def rows(width: int) -> Tensor:
        return torch.zeros(MAX_ROWS, width, dtype=dtype, device=device)

    def products(read: list[Weight], tiles: Tiles, split: bool) -> list[Launch]:
        columns, depth = read[0].shape
        x, out = rows(depth), partial_sums(tiles, columns, device) if split else rows(columns)
        return [partial(project, x, weight, out, tiles) for weight in read]

    def gates(tiles: DraftTiles) -> list[Launch]:
        doubled, depth = layers[0].gate_up.shape
        x, out = rows(depth), rows(doubled // 2)
        return [partial(gate_up, x, layer.gate_up, out, "silu", tiles.gate_up) for layer in layers]

    def heads(tiles: DraftTiles) -> list[Launch]:
        vocab, depth = head.shape
        out = HeadOutput.allocate(vocab, tiles.head, device, keep_logits=False)
        return [partial(head_rows, rows(depth), head, softcap, out, tiles.head)]

    bits = 8 * weights.context.values.nbytes // weights.context.shape.numel()
    return {
        "head": TileTrial(heads, bits=8 * head.values.nbytes // head.shape.numel()),
        "gate_up": TileTrial(gates, 2, bits),
        "qkv": TileTrial(lambda tiles: products([each.qkv for each in layers], tiles.qkv, False), 1, bits),
        "down": TileTrial(
            lambda tiles: products([each.down for each in layers], tiles.down, True), 1, bits, splits=True
        ),
        "output": TileTrial(
            lambda tiles: products([each.output for each in layers], tiles.output, True), 1, bits, splits=True
        ),
        "context": TileTrial(lambda tiles: products([weights.context], tiles.context, True), 1, bits, splits=True),
        "context_kv": TileTrial(lambda tiles: products([weights.context_kv], tiles.context_kv, False), 1, bits),
    }
