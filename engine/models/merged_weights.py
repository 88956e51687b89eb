"""Merges weights that one kernel reads together: matrices side by side in one tensor, of which modules hold views."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from ..kernels.weights.kinds import hold_in, weight_of
from ..kernels.weights.q4 import Q4Weight
from ..kernels.weights.weight import Weight


@torch.no_grad()
def side_by_side(*modules: nn.Module) -> Weight:
    """One weight [sum of outputs, inputs] of these layers' weights, all of one kind, which become views of it. Needs no
    memory beyond one copy; a second call returns the first's. Biases stay apart."""
    weights = [weight_of(module) for module in modules]
    values, scales = [each.values for each in weights], [each.scales for each in weights if each.scales is not None]
    if _adjacent(values) and _adjacent(scales) and not isinstance(weights[0], Q4Weight):
        return type(weights[0])(_spanning(values), _spanning(scales) if scales else None)
    whole, start = type(weights[0]).below_one_another(weights), 0
    for module, weight in zip(modules, weights, strict=True):
        hold_in(module, "weight", whole.rows(start, start + weight.shape[0]))
        start += weight.shape[0]
    return whole


def groups_in(model: nn.Module, groups: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """For each module of a model and each group of names, the paths of the modules in it that have these names."""
    for path, module in model.named_modules():
        for names in groups:
            yield [f"{path}.{name}" for name in names if isinstance(getattr(module, name, None), nn.Module)]


class Together:
    """Lays weights that one kernel reads side by side as soon as all of them are loaded, so that what is loaded next
    takes the places they leave. Done behind the last one, these are gaps between tensors that stay: 1.9 GB of a card
    with 24 for Qwen3.8-27B in INT4."""

    def __init__(self, model: nn.Module, groups: Sequence[Sequence[str]]):
        """``groups``: names of projections that lie in one module, as ``TargetModel.read_together`` has them."""
        self._model = model
        self._group: dict[str, tuple[list[str], set[str]]] = {}
        """By a parameter's name: the paths of the modules of its group, and the names that are waited for."""
        for paths in groups_in(model, groups):
            waiting = {f"{path}.weight" for path in paths}
            self._group |= dict.fromkeys(waiting, (paths, waiting))

    def loaded(self, name: str) -> None:
        """Learns that the parameter of this name is in place."""
        if name in self._group:
            paths, waiting = self._group[name]
            waiting.discard(name)
            if not waiting:
                side_by_side(*map(self._model.get_submodule, paths))  # others than at first: packing replaces them


def biases_of(*modules: nn.Module) -> Tensor | None:
    """A copy of these layers' biases, side by side as their weights are; None where they have none."""
    biases = [module.bias for module in modules]
    return torch.cat([bias.detach() for bias in biases if isinstance(bias, Tensor)]) if None not in biases else None


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """The weights of one layer: queries, keys and values side by side, and the gate before up."""

    qkv: Weight
    output: Weight
    gate_up: Weight
    down: Weight
    qkv_bias: Tensor | None
    output_bias: Tensor | None

    @classmethod
    def of(cls, attention: Any, mlp: Any, read: Callable[[Weight], Weight]) -> LayerWeights:
        """Those of an attention (q_proj to o_proj, perhaps without v_proj) and a gated MLP, merged in place; ``read``
        makes of each what is read."""
        projections = [each for each in (attention.q_proj, attention.k_proj, attention.v_proj) if each is not None]
        return cls(
            qkv=read(side_by_side(*projections)),
            output=read(weight_of(attention.o_proj)),
            gate_up=read(side_by_side(mlp.gate_proj, mlp.up_proj)),
            down=read(weight_of(mlp.down_proj)),
            qkv_bias=biases_of(*projections),
            output_bias=biases_of(attention.o_proj),
        )

    @property
    def nbytes(self) -> int:
        return sum(weight.nbytes for weight in (self.qkv, self.output, self.gate_up, self.down))


def _spanning(parts: Sequence[Tensor]) -> Tensor:
    return parts[0].as_strided((sum(map(len, parts)), *parts[0].shape[1:]), parts[0].stride())


def _adjacent(parts: Sequence[Tensor]) -> bool:
    """Whether each part begins in memory where the one before ends, in one allocation."""
    return all(
        after.untyped_storage().data_ptr() == before.untyped_storage().data_ptr()
        and after.storage_offset() == before.storage_offset() + before.numel()
        and before.is_contiguous()
        for before, after in pairwise(parts)
    )
