"""The kinds of weights, and how modules hold them: floats as a parameter of the module's own, any other kind as a part
of the module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from torch import Tensor, nn

from ...commands import WeightFormat
from .fp8 import Fp8Weight
from .int4 import Int4Weight
from .mxfp4 import Mxfp4Weight
from .panels import PackedWeight
from .plain import PlainWeight
from .weight import Weight

PACKED: Final[dict[WeightFormat, type[PackedWeight]]] = {"fp8": Fp8Weight, "int4": Int4Weight, "mxfp4": Mxfp4Weight}
"""What a target's matrices are in formats other than floats."""
MAKERS: Final[dict[WeightFormat, Callable[[Tensor], Weight]]] = {
    "bf16": PlainWeight, **{weights: kind.of for weights, kind in PACKED.items()}
}  # fmt: skip
"""By format, what packs a weight of floats. On a CPU "bf16" is fp32 and stays as it is."""


class HeldWeight(nn.Module):
    """A weight in the place of a module's parameter. Its tensors are parameters, so that they move and count as others
    do."""

    values: nn.Parameter
    scales: nn.Parameter | None

    def __init__(self, weight: Weight):
        super().__init__()
        self.weight = weight
        for name, tensor in (("values", weight.values), ("scales", weight.scales)):
            self.register_parameter(name, None if tensor is None else nn.Parameter(tensor, requires_grad=False))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> HeldWeight:
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        scales = None if self.scales is None else self.scales.detach()
        self.weight = replace(self.weight, values=self.values.detach(), scales=scales)
        return self


def weight_of(module: nn.Module, name: str = "weight") -> Weight:
    held = getattr(module, name)
    return held.weight if isinstance(held, HeldWeight) else PlainWeight(held.detach())


def hold_in(module: nn.Module, name: str, weight: Weight) -> None:
    if isinstance(weight, PlainWeight):
        setattr(module, name, nn.Parameter(weight.values, requires_grad=False))
    else:
        delattr(module, name)
        setattr(module, name, HeldWeight(weight))


def format_of(weight: Weight) -> WeightFormat:
    return next((weights for weights, kind in PACKED.items() if isinstance(weight, kind)), "bf16")


def bytes_of(*models: nn.Module) -> int:
    """Bytes of the weights of models, norms included."""
    return sum(parameter.nbytes for model in models for parameter in model.parameters())
