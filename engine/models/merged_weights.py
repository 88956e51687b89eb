"""Weights that one kernel reads together lie together: matrices side by side in one tensor, modules holding views."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn


@torch.no_grad()
def side_by_side(*layers: nn.Linear) -> Tensor:
    """One tensor [sum of outputs, inputs] of these layers' weights, in order, which become views of it.

    Takes no memory beyond that of the largest call: the old tensors are freed. A second call finds the first's work
    done, and returns the same memory.
    """
    weights = [layer.weight for layer in layers]
    if not _adjacent(weights):
        for layer, part in zip(layers, _joined(weights), strict=True):
            layer.weight = nn.Parameter(part, requires_grad=False)
    first = layers[0].weight.detach()
    return first.as_strided((sum(len(weight) for weight in weights), first.shape[1]), (first.shape[1], 1))


def _joined(weights: list[Tensor]) -> tuple[Tensor, ...]:
    """The weights as views of one new tensor."""
    return torch.split(torch.cat([weight.detach() for weight in weights]), [len(weight) for weight in weights])


def _adjacent(weights: list[Tensor]) -> bool:
    """Whether each begins in memory where the one before ends, in one allocation."""
    return all(
        after.untyped_storage().data_ptr() == before.untyped_storage().data_ptr()
        and after.storage_offset() == before.storage_offset() + before.numel()
        and before.is_contiguous()
        for before, after in pairwise(weights)
    )
