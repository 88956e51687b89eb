"""How packed weights lie in memory: in panels of 16 rows, a panel in blocks of 32 neighbours. A program that reads some
rows a block at a time then reads memory in long pieces: row by row, FP8 products took a third longer, INT4's half."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, log2
from typing import ClassVar, Self

import torch
from torch import Tensor

from ..decode.tiling.tiles import FormatTiles
from .int8 import ROWS_AT_ONCE
from .weight import Weight

ROWS = 16
"""Rows of a panel."""
DEPTH = 32
"""Neighbours in a block."""
Rows = tuple[int, Tensor, Tensor]
"""Some rows of a weight: the first one's index, numbers [n, depth] and scales [n] or [n, groups], as
``PackedWeight.packed`` takes them."""


@dataclass(frozen=True, slots=True)
class PackedWeight(Weight):
    """A target's weight [..., rows, depth] in one of the packed formats: ``values`` are uint8
    [..., rows / 16, depth / 32, 16, 32 * bits / 8], and scales multiply them, one for each group of a row's numbers or
    for the row. A format is a subclass; ``loading/file_formats.py`` says how files store it."""

    bits: ClassVar[int]
    """How many bits one number of the weight has."""
    scale_dtype: ClassVar[torch.dtype]
    """The dtype of scales, unless a file has others."""
    scale_end: ClassVar[float] = inf
    """Scales must be smaller than this."""
    scale_of_row: ClassVar[bool] = False
    """Whether a row has one scale, [..., rows]; else each group has one, laid out by ``scales_to_panels``."""
    experts_only: ClassVar[bool] = False
    """Whether targets in this format hold only their experts in it."""
    tiles: ClassVar[FormatTiles]
    rows_together: ClassVar[int] = ROWS

    @property
    def shape(self) -> torch.Size:
        *outer, panels, blocks, rows, _ = self.values.shape
        return torch.Size((*outer, panels * rows, blocks * DEPTH))

    @classmethod
    def allocate(cls, *shape: int, device: torch.device, group: int = DEPTH, scales: torch.dtype | None = None) -> Self:
        """Memory for a weight [..., rows, depth]. ``group`` and the dtype of ``scales``: where a format has several."""
        *outer, rows, depth = shape
        assert rows % ROWS == depth % DEPTH == depth % group == 0, f"{rows} x {depth} are no panels of whole groups"
        values = (*outer, rows // ROWS, depth // DEPTH, ROWS, DEPTH * cls.bits // 8)
        each = (*outer, rows) if cls.scale_of_row else (*outer, rows // ROWS, depth // group, ROWS)
        dtype = cls.scale_dtype if scales is None else scales
        return cls(torch.empty(values, dtype=torch.uint8, device=device), torch.empty(each, dtype=dtype, device=device))

    @classmethod
    @abstractmethod
    def packed(cls, numbers: Tensor, scales: Tensor) -> Self:
        """Makes a weight of numbers, uint8 [..., rows, depth], and scales [..., rows] or [..., rows, groups]."""

    @classmethod
    @abstractmethod
    def rounded(cls, rows: Tensor, group: int) -> tuple[Tensor, Tensor]:
        """The numbers and scales nearest to rows of floats [n, depth], as ``packed`` takes them."""

    @classmethod
    @abstractmethod
    def floats(cls, numbers: Tensor, scales: Tensor) -> Tensor:
        """fp32 [..., rows, depth]: what such numbers and scales stand for. Defines the format."""

    @classmethod
    @abstractmethod
    def zeros(cls, numbers: Tensor) -> Tensor:
        """Which of the numbers stand for zero, bool of their shape."""

    @classmethod
    def wrong_scale(cls, scales: Tensor, parts: Iterable[Rows]) -> str:
        """What is wrong with a scale of a file, in words; "" for nothing. ``parts``: all rows, and their scales."""
        # Collected in one tensor, so that a GPU is waited for once.
        faults = [~scales.isfinite().all(), (scales.abs() >= cls.scale_end).any(), (scales == 0).any()]
        endless, huge, zero = torch.stack(faults).tolist()
        if endless:
            return "not a finite number"
        if huge:
            return f"2^{log2(cls.scale_end):.0f} or more"
        return "0, but the numbers that it scales are not" if zero and any(map(cls._loses, parts)) else ""

    @classmethod
    def _loses(cls, chunk: Rows) -> bool:
        """Whether numbers other than zero stand under a scale of 0, which loses them."""
        _, numbers, scales = chunk
        others = ~cls.zeros(numbers).reshape(*scales.shape, -1)
        return bool(others.any(-1)[scales == 0].any())

    @classmethod
    def of(cls, weight: Tensor, group: int = DEPTH) -> Self:
        """Rounds a weight of floats [..., rows, depth] to this format."""
        rows = weight.flatten(0, -2)
        return cls.allocate(*weight.shape, device=weight.device, group=group).filled(
            (start, *cls.rounded(rows[start : start + ROWS_AT_ONCE], group))
            for start in range(0, len(rows), ROWS_AT_ONCE)
        )

    def filled(self, parts: Iterable[Rows]) -> Self:
        """Fills the memory that was allocated, and returns itself."""
        assert self.scales is not None
        values, scales = (tensor.flatten(0, len(self.shape) - 2) for tensor in (self.values, self.scales))
        for start, numbers, steps in parts:
            tensor = self.packed(numbers, steps)
            assert tensor.scales is not None
            for target, source in ((values, tensor.values), (scales, tensor.scales)):
                first = start * len(target) // (len(values) * ROWS)
                target[first : first + len(source)] = source
        return self


def to_panels(values: Tensor, width: int) -> Tensor:
    """[..., rows / 16, columns / width, 16, width] of a matrix [..., rows, columns], contiguous."""
    *outer, rows, columns = values.shape
    assert rows % ROWS == 0 and columns % width == 0, f"{rows} x {columns} is not made of blocks of {ROWS} x {width}"
    return values.reshape(*outer, rows // ROWS, ROWS, columns // width, width).transpose(-3, -2).contiguous()


def from_panels(panels: Tensor) -> Tensor:
    """The matrix [..., rows, columns] of which ``to_panels`` made these panels."""
    *outer, panel, blocks, rows, width = panels.shape
    return panels.transpose(-3, -2).reshape(*outer, panel * rows, blocks * width)


def scales_to_panels(scales: Tensor) -> Tensor:
    """[..., rows / 16, groups, 16] of the scales [..., rows, groups] of a weight of 4 bits. A row's stands beside that
    of the row 8 further on: the same threads multiply both, and read them at once."""
    *outer, rows, groups = scales.shape
    placed = scales.reshape(*outer, rows // ROWS, 2, ROWS // 2, groups).movedim(-1, -3)
    return placed.transpose(-2, -1).flatten(-2).contiguous()


def scales_from_panels(panels: Tensor) -> Tensor:
    """The scales [..., rows, groups] of which ``scales_to_panels`` made these panels."""
    *outer, panel, groups, rows = panels.shape
    return panels.reshape(*outer, panel, groups, rows // 2, 2).movedim(-3, -1).transpose(-3, -2).flatten(-4, -2)
