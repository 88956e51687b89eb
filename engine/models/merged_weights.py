"""Weights that one kernel reads together lie together: matrices side by side in one tensor, modules holding views."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from ..kernels.weights.kinds import weight_from
from ..kernels.weights.weight import Weight


@torch.no_grad()
def side_by_side(*modules: nn.Module) -> Weight:
    """One weight [sum of outputs, inputs] of these layers' weights, all of one kind, which become views of it. Needs no
    memory beyond one copy; a second call returns the first's. Biases stay apart."""
    names = [name for name, _ in modules[0].named_parameters(recurse=False) if name != "bias"]
    return weight_from({name.removeprefix("weight"): _whole(modules, name) for name in names})


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
    """Whether each begins in memory where the one before ends, in one allocation."""
    return all(
        after.untyped_storage().data_ptr() == before.untyped_storage().data_ptr()
        and after.storage_offset() == before.storage_offset() + before.numel()
        and before.is_contiguous()
        for before, after in pairwise(parts)
    )
