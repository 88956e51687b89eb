"""Cases of the kernels between two products of a target, which add to the residual and norm for the next product."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from ....kernels.decode.norm import add_and_norm, after_attention, after_feed_forward
from ....kernels.decode.tiles import ROW_TILES, RowTiles, TargetTiles
from ....kernels.reference.joins import AttentionJoin, FeedForwardJoin
from ....kernels.toolchain.jit import MAX_ROWS
from ....models.family import TargetConfig
from .case import Case, Launch, at_rows, rows_of


def norm_cases(config: TargetConfig, tiles: TargetTiles, itemsize: int, rows: int) -> Iterator[Case]:
    """The cases of the norms in the target's layers."""
    if config.norms_branches:
        yield _after_attention(config, tiles, itemsize, rows)
        yield _after_feed_forward(config, tiles, itemsize, rows)
        return
    yield _add_and_norm("after attention", config, tiles.output.splits, itemsize, rows)
    if config.moe is None:
        yield _add_and_norm("after feed-forward", config, tiles.down.splits, itemsize, rows)
    else:
        yield _add_and_norm("after feed-forward", config, config.moe.top_k, itemsize, rows, of_experts=True)


def _add_and_norm(
    name: str, config: TargetConfig, count: int, itemsize: int, rows: int, of_experts: bool = False
) -> Case:
    """The case that adds ``count`` splits, or the outputs of as many experts."""
    hidden = config.hidden_size

    def prepare(device: torch.device, dtype: torch.dtype, copies: int) -> Callable[[RowTiles], list[Launch]]:
        x, normed = rows_of(device, dtype, hidden), rows_of(device, dtype, hidden)
        weight = torch.ones(hidden, device=device, dtype=dtype)
        if of_experts:
            parts = torch.randn(MAX_ROWS, count, hidden, device=device, dtype=dtype).transpose(0, 1)
        else:
            parts = torch.randn(count, MAX_ROWS, hidden, device=device)
        run = partial(add_and_norm, parts, x, weight, 1e-6, normed, "qwen", None)
        return lambda tiles: [partial(run, tiles, rows)] * copies

    size = rows * hidden * (count * (itemsize if of_experts else 4.0) + 3 * itemsize)
    return Case(at_rows(rows, name), size, ROW_TILES, prepare)


def _after_attention(config: TargetConfig, tiles: TargetTiles, itemsize: int, rows: int) -> Case:
    hidden, splits = config.hidden_size, tiles.output.splits

    def prepare(device: torch.device, dtype: torch.dtype, copies: int) -> Callable[[RowTiles], list[Launch]]:
        x, dense, experts, routed = (rows_of(device, dtype, hidden) for _ in range(4))
        weight = torch.ones(hidden, device=device, dtype=dtype)
        weights = AttentionJoin(weight, weight, weight, weight)
        partials = torch.randn(splits, MAX_ROWS, hidden, device=device)
        run = partial(after_attention, partials, x, weights, 1e-6, dense, experts, routed)
        return lambda tiles: [partial(run, tiles, rows)] * copies

    size = rows * hidden * (4.0 * splits + 5 * itemsize)
    return Case(at_rows(rows, "after attention"), size, ROW_TILES, prepare)


def _after_feed_forward(config: TargetConfig, tiles: TargetTiles, itemsize: int, rows: int) -> Case:
    hidden, splits = config.hidden_size, tiles.down.splits
    top_k = config.moe.top_k if config.moe else 0

    def prepare(device: torch.device, dtype: torch.dtype, copies: int) -> Callable[[RowTiles], list[Launch]]:
        def weight(size: int) -> Tensor:
            return torch.ones(size, device=device, dtype=dtype)

        x, normed = rows_of(device, dtype, hidden), rows_of(device, dtype, hidden)
        branch = weight(hidden) if top_k else None
        weights = FeedForwardJoin(branch, branch, weight(hidden), weight(1), weight(hidden))
        partials = torch.randn(splits, MAX_ROWS, hidden, device=device)
        pairs = torch.randn(MAX_ROWS, top_k, hidden, device=device, dtype=dtype) if top_k else None
        run = partial(after_feed_forward, partials, pairs, x, weights, 1e-6, normed, None)
        return lambda tiles: [partial(run, tiles, rows)] * copies

    size = rows * hidden * (4.0 * splits + (top_k + 3) * itemsize)
    return Case(at_rows(rows, "after feed-forward"), size, ROW_TILES, prepare)
