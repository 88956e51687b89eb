"""Routing by given scores, for tests: the router's own launch with forced scores."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.kernels.decode.experts.router import Assignment, RouterRows, SplitScratch, gate_up_and_route
from engine.kernels.decode.tiling.tiles import Tiles
from engine.kernels.weights.plain import PlainWeight

SIZE = 32


def route_rows(scores: Tensor, rows: Tensor, per_expert_scale: Tensor, found: Assignment, max_rows: int = 16) -> None:
    """Fills ``found`` for fp32 scores [n, experts], of whose rows int32 ``rows`` [1] count."""
    device, tiles = scores.device, Tiles(16, 32)
    x, weight, out = (torch.zeros(count, SIZE, device=device) for count in (16, 2 * SIZE, 16))
    router_weight = torch.zeros(scores.shape[1], SIZE, device=device)
    router = RouterRows(x, router_weight, per_expert_scale, scores, rows, found, tiles)
    scratch = SplitScratch.allocate(tiles, scores.shape[1], device)
    gate_up_and_route(x, PlainWeight(weight), out, tiles, router, scratch, max_rows)
    assert not scratch.arrived.any(), "the next launch would not find out when its programs are done"
