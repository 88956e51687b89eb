"""The kinds of weights, and which of them a module holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from torch import Tensor, nn

from ...commands import WeightFormat
from .fp8 import Fp8Weight
from .int4 import Int4Weight
from .int8 import Int8Weight
from .integers import ByteWeight, IntegerWeight, RoundedRowsWeight
from .mxfp4 import Mxfp4Weight
from .plain import PlainWeight
from .q4 import Q4Weight
from .weight import Weight

KINDS: tuple[type[Weight], ...] = (
    PlainWeight, Int8Weight, Fp8Weight, Int4Weight, Mxfp4Weight, Q4Weight, IntegerWeight, RoundedRowsWeight, ByteWeight
)  # fmt: skip

PACKED: Final[dict[WeightFormat, type[Fp8Weight | Int4Weight | Mxfp4Weight]]] = {
    "fp8": Fp8Weight, "int4": Int4Weight, "mxfp4": Mxfp4Weight
}  # fmt: skip
"""What a target's matrices are in formats other than floats."""
MAKERS: Final[dict[WeightFormat, Callable[[Tensor], Weight]]] = {
    "bf16": PlainWeight, **{weights: kind.of for weights, kind in PACKED.items()}
}  # fmt: skip
"""By format, what packs a weight of floats. On a CPU "bf16" is fp32 and stays as it is."""


def weight_of(module: nn.Module, stem: str = "weight") -> Weight:
    """The weight that a module holds in its parameters ``stem`` + the ``endings`` of a kind."""
    # named_parameters() is five times as slow, and CPUs come here in every pass.
    named = [(name, part) for name, part in module._parameters.items() if part is not None]
    return weight_from({name[len(stem) :]: part.detach() for name, part in named if name.startswith(stem)})


def format_of(weight: Weight) -> WeightFormat:
    """The format of a target's weight."""
    return next((weights for weights, kind in PACKED.items() if isinstance(weight, kind)), "bf16")


def bytes_of(*models: nn.Module) -> int:
    """Bytes of the weights of models, norms included: a model's parameters are its weights' tensors."""
    return sum(parameter.nbytes for model in models for parameter in model.parameters())


def weight_from(tensors: Mapping[str, Tensor]) -> Weight:
    """The weight of tensors by their names' endings ({"": values}: plain); ``ValueError`` for no kind."""
    for kind in KINDS:
        if set(kind.endings) == tensors.keys() and tensors[kind.endings[0]].dtype in kind.dtypes:
            return kind(*(tensors[ending] for ending in kind.endings))
    what = ", ".join(f"{ending or 'no ending'} ({tensor.dtype})" for ending, tensor in tensors.items())
    raise ValueError(f"No kind of weight has tensors with these endings: {what}.")
