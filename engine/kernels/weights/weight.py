"""The base of all kinds of weights. Those that targets are packed in have another, ``panels.PackedWeight``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import torch
from torch import Tensor
from torch.nn import functional as F

from ..toolchain.jit import HAS_TRITON, INTERPRETED


@dataclass(frozen=True, slots=True)
class Weight(ABC):
    """A matrix [rows, depth], or [experts, rows, depth]; a product has a result per row. Modules hold it
    (``kinds.weight_of``)."""

    values: Tensor
    """The tensor that a kernel reads first, [..., rows, depth] unless it is packed otherwise."""
    scales: Tensor | None = None
    """A scale for each row, [..., rows], or for each group of a row."""
    inside: bool = field(default=True, kw_only=True)
    """Whether a kernel may unpack it while it multiplies many rows; False in a pair on whose GPU that is wrong."""

    rows_together: ClassVar[int] = 1
    """How many rows share the first dimension of ``values``: parts of a weight begin at multiples of them."""

    @property
    @abstractmethod
    def format(self) -> int:
        """Tells kernels how to unpack a tile: the FORMAT of ``matrix.Matrix``."""

    @property
    def shape(self) -> torch.Size:
        """The shape of the matrix for which it stands: ([experts,] rows, depth)."""
        return self.values.shape

    @property
    def nbytes(self) -> int:
        """Bytes that it takes in memory, and that a product reads."""
        return self.values.nbytes + (0 if self.scales is None else self.scales.nbytes)

    @property
    def is_contiguous(self) -> bool:
        """Whether kernels can read it."""
        return self.values.is_contiguous() and (self.scales is None or self.scales.is_contiguous())

    @abstractmethod
    def restored(self) -> Tensor:
        """fp32 [..., rows, depth]: what products with this weight multiply by. Defines the kind."""

    def restored_for(self, dtype: torch.dtype) -> Tensor:
        """fp32 [..., rows, depth]: what kernels multiply rows of ``dtype`` by. Where scales are multiplied in before
        the product, that is rounded to the dtype."""
        return self.restored()

    def rows(self, start: int, end: int) -> Self:
        """A view of rows start .. end - 1 of each matrix; both are multiples of ``rows_together``."""
        axis, together = len(self.shape) - 2, self.rows_together
        assert start % together == end % together == 0, f"rows {start} to {end} are no whole panels of {together}"

        def of(tensor: Tensor) -> Tensor:
            unit = self.shape[axis] // tensor.shape[axis]
            return tensor.narrow(axis, start // unit, (end - start) // unit)

        return replace(self, values=of(self.values), scales=None if self.scales is None else of(self.scales))

    @classmethod
    def below_one_another(cls, weights: Sequence[Self]) -> Self:
        """A new weight with the rows of all of these, in order. All have one depth."""
        axis, scales = len(weights[0].shape) - 2, [weight.scales for weight in weights if weight.scales is not None]
        values = torch.cat([weight.values for weight in weights], axis)
        return replace(weights[0], values=values, scales=torch.cat(scales, axis) if scales else None)

    def linear(self, x: Tensor) -> Tensor:
        """Products [n, rows] of any number of rows x [n, depth], in x's dtype: the definition, and how a CPU computes
        them. ``prefill/products.product`` is the same by the fastest way."""
        return F.linear(x, self.restored().to(x.dtype))

    def grouped(self, x: Tensor, ends: Tensor) -> Tensor:
        """Products [n, rows] of x [n, depth] sorted by expert. ``ends`` int32 [experts]: the row at which each expert's
        rows end. The definition, like ``linear``."""
        return F.grouped_mm(x, self.restored().to(x.dtype).mT, offs=ends)

    def unpacks_inside(self, x: Tensor) -> bool:
        """Whether one kernel unpacks it and multiplies rows x: on a GPU (or where kernels are compiled for one), in
        bf16. Elsewhere it is unpacked first, which defines the product."""
        kernels = HAS_TRITON and not INTERPRETED and x.dtype is torch.bfloat16
        return self.inside and kernels and (x.is_cuda or x.is_meta)
