"""Forces the routing: random weights don't choose experts as a trained model does, so each figure states a routing.
*Uniform*: 16 rows of top-8 touch 82 of 128 experts. *Correlated*: neighbours share part of their scores, and 16 rows
touch 50."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Literal

import torch
from torch import Tensor

from ...models.target import TargetModel

Routing = Literal["uniform", "correlated"]
ROUTINGS: tuple[Routing, ...] = ("uniform", "correlated")

SHARED = {"uniform": 0.0, "correlated": 0.45}
"""The share of a score's variance that all rows of a layer have in common."""

ROWS = 256
"""Rows of forced scores; longer passes use them over again."""


def forced_scores(routing: Routing, num_layers: int, num_experts: int, device: torch.device) -> list[Tensor]:
    """Router scores, fp32 [ROWS, experts] for each layer, always the same ones."""
    generator = torch.Generator().manual_seed(sum(map(ord, routing)))
    shared = SHARED[routing]

    def layer() -> Tensor:
        common = torch.randn(1, num_experts, generator=generator)
        own = torch.randn(ROWS, num_experts, generator=generator)
        scores: Tensor = math.sqrt(shared) * common + math.sqrt(1 - shared) * own
        return scores.to(device)

    return [layer() for _ in range(num_layers)]


def force_routing(target: TargetModel, scores: Sequence[Tensor] | None) -> None:
    """Replaces every router's scores; with None the routers choose again. Scores already in force are overwritten in
    place, where captured graphs read them: force some before anything is captured."""
    for index, router in enumerate(target.routers):
        if scores is not None and router.forced is not None:
            router.forced.copy_(scores[index])
        else:
            router.forced = None if scores is None else scores[index].clone()


def distinct_experts(scores: Sequence[Tensor], top_k: int, rows: int) -> float:
    """How many experts the first rows of a pass touch, mean over the layers."""
    return fmean(len(set(layer[:rows].topk(top_k, dim=-1).indices.flatten().tolist())) for layer in scores)
