"""Routing by given scores, for tests: the router's own launch with forced scores."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.kernels.router_rows import Assignment, RouterRows, gate_up_and_route
from engine.kernels.tiles import Tiles

SIZE = 32


def route_rows(scores: Tensor, rows: Tensor, per_expert_scale: Tensor, found: Assignment, max_rows: int = 16) -> None:
    """Fills ``found`` for fp32 scores [n, experts], of whose rows int32 ``rows`` [1] count."""
    device = scores.device
    x, weight, out = (torch.zeros(count, SIZE, device=device) for count in (16, 2 * SIZE, 16))
    router_weight, own = torch.zeros(scores.shape[1], SIZE, device=device), torch.zeros(16, scores.shape[1]).to(device)
    arrived = torch.zeros(1, dtype=torch.int32, device=device)
    router = RouterRows(x, router_weight, per_expert_scale, own, scores, rows, arrived, found)
    gate_up_and_route(x, weight, out, Tiles(16, 32), router, max_rows)
    assert int(arrived) == 0, "the next launch would not find out when its programs are done"
