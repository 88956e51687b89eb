"""Which kinds of weights there are, and which of them a module holds."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from .int8 import Int8Weight
from .plain import PlainWeight
from .weight import Weight

KINDS: tuple[type[Weight], ...] = (PlainWeight, Int8Weight)


def weight_of(module: nn.Module, stem: str = "weight") -> Weight:
    """The weight that a module holds in its parameters ``stem`` and, with scales, ``stem`` + "_scale"."""
    named = module.named_parameters(recurse=False)
    return weight_from({name[len(stem) :]: parameter.detach() for name, parameter in named if name.startswith(stem)})


def bytes_of(*models: nn.Module) -> int:
    """What the weights of models take, norms included: a model's parameters are its weights' tensors."""
    return sum(parameter.nbytes for model in models for parameter in model.parameters())


def weight_from(tensors: Mapping[str, Tensor]) -> Weight:
    """The weight of tensors by their names' endings ({"": values}: plain); ``ValueError`` for no kind."""
    for kind in KINDS:
        if set(kind.endings) == tensors.keys():
            return kind(*(tensors[ending] for ending in kind.endings))
    raise ValueError(f"No kind of weight has tensors with the endings {list(tensors)}.")
