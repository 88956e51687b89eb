"""Merges weights that one kernel reads together: matrices side by side in one tensor, of which modules hold views."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from ..kernels.weights.kinds import weight_from, weight_of
from ..kernels.weights.q4 import Q4Weight
from ..kernels.weights.weight import Weight


@torch.no_grad()
def side_by_side(*modules: nn.Module) -> Weight:
    """One weight [sum of outputs, inputs] of these layers' weights, all of one kind, which become views of it. Needs no
    memory beyond one copy; a second call returns the first's. Biases stay apart."""
    weights = [weight_of(module) for module in modules]
    if isinstance(weights[0], Q4Weight):
        return _joined(modules, weights)
    names = [name for name, _ in modules[0].named_parameters(recurse=False) if name != "bias"]
    return weight_from({name.removeprefix("weight"): _whole(modules, name) for name in names})


def biases_of(*modules: nn.Module) -> Tensor | None:
    """A copy of these layers' biases, side by side as their weights are; None where they have none."""
    biases = [module.bias for module in modules]
    return torch.cat([bias.detach() for bias in biases if isinstance(bias, Tensor)]) if None not in biases else None


def _joined(modules: Sequence[nn.Module], weights: Sequence[Weight]) -> Weight:
    """One weight of a kind whose rows don't all lie along the first dimension."""
    whole = type(weights[0]).below_one_another(weights)
    start = 0
    for module, weight in zip(modules, weights, strict=True):
        end = start + weight.shape[0]
        part, start = whole.rows(start, end), end
        assert part.scales is not None
        for ending, tensor in zip(part.endings, (part.values, part.scales), strict=True):
            setattr(module, f"weight{ending}", nn.Parameter(tensor, requires_grad=False))
    return whole


def _whole(modules: tuple[nn.Module, ...], name: str) -> Tensor:
    """One parameter of all modules, as one tensor."""
    parts = [module.get_parameter(name).detach() for module in modules]
    if not _adjacent(parts):
        parts = list(torch.split(torch.cat(parts), [len(part) for part in parts]))
        for module, part in zip(modules, parts, strict=True):
            setattr(module, name, nn.Parameter(part, requires_grad=False))
    first = parts[0]
    return first.as_strided((sum(map(len, parts)), *first.shape[1:]), first.stride())


def _adjacent(parts: list[Tensor]) -> bool:
    """Whether each part begins in memory where the one before ends, in one allocation."""
    return all(
        after.untyped_storage().data_ptr() == before.untyped_storage().data_ptr()
        and after.storage_offset() == before.storage_offset() + before.numel()
        and before.is_contiguous()
        for before, after in pairwise(parts)
    )
