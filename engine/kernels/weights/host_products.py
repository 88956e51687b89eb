"""The ways in which a CPU can multiply by a target's weights, and the one it uses. Every kind but floats gives a row
the same bits alone and among others; which are fast differs by what the CPU has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from torch import Tensor

from .fbgemm import FbgemmWeight, has_fbgemm
from .integers import IntegerWeight, LaidOutWeight, RoundedRowsWeight, multiplies_integers
from .plain import PlainWeight
from .q4 import Q4Weight, multiplies_nibbles
from .weight import Weight

FLOATS: Final = "floats"
NIBBLES: Final = "nibbles"
HOST_MAKERS: Final[Mapping[str, Callable[[Tensor], Weight | None]]] = {
    NIBBLES: Q4Weight.of,
    "integers": IntegerWeight.of,
    "laid out": LaidOutWeight.of,
    "fbgemm": FbgemmWeight.of,
    "rounded rows": RoundedRowsWeight.of,
    FLOATS: PlainWeight,
}
"""By name, what makes a weight of fp32 numbers; it returns None for numbers that the kind can't hold."""


@dataclass(frozen=True, slots=True)
class HostProducts:
    """The kind for each sort of weights, by a name in ``HOST_MAKERS``."""

    on_levels: str
    """The kind for layers whose weights all lie on 16 levels in every group."""
    others: str
    """The kind for other layers: 8 bits, or floats."""
    head: str
    """The kind for the head, whose sums are in fp32: logits in bf16 tie."""

    @classmethod
    def of_this_cpu(cls) -> HostProducts:
        """The kinds that are fastest on this CPU by its features, for where nobody has measured."""
        return cls(for_levels()[0], for_others()[0], for_head()[0])

    def in_fewer_bits(self, in_levels: bool) -> bool:
        """Whether layers are multiplied in fewer bits; ``in_levels``: whether all their weights lie on 16 levels."""
        return (self.on_levels if in_levels else self.others) != FLOATS


def for_levels() -> tuple[str, ...]:
    """The kinds that this CPU and PyTorch have for weights on 16 levels; the one that serves most CPUs best comes
    first."""
    return ((NIBBLES,) if multiplies_nibbles() else ()) + for_others()


def for_others() -> tuple[str, ...]:
    """The kinds that this CPU has for all other weights of layers, the best for most CPUs first."""
    return (("integers",) if multiplies_integers() else ()) + ("rounded rows", FLOATS)


def for_head() -> tuple[str, ...]:
    """The kinds that this CPU has for the output head, the best for most CPUs first."""
    whole = (("laid out",) if multiplies_integers() else ()) + (("fbgemm",) if has_fbgemm() else ())
    return (*whole, FLOATS)
