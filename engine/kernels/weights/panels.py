"""How packed weights lie in memory: in panels of 16 rows, a panel in blocks of 32 neighbours. A program that reads some
rows a block at a time then reads memory in long pieces: row by row, FP8 products took a third longer, INT4's half."""

from __future__ import annotations

from torch import Tensor

ROWS = 16
"""Rows of a panel."""
DEPTH = 32
"""Neighbours in a block."""


def to_panels(values: Tensor, width: int) -> Tensor:
    """[..., rows / 16, columns / width, 16, width] of a matrix [..., rows, columns], contiguous."""
    *outer, rows, columns = values.shape
    assert rows % ROWS == 0 and columns % width == 0, f"{rows} x {columns} is not made of blocks of {ROWS} x {width}"
    return values.reshape(*outer, rows // ROWS, ROWS, columns // width, width).transpose(-3, -2).contiguous()


def from_panels(panels: Tensor) -> Tensor:
    """The matrix [..., rows, columns] again."""
    *outer, panel, blocks, rows, width = panels.shape
    return panels.transpose(-3, -2).reshape(*outer, panel * rows, blocks * width)


def scales_to_panels(scales: Tensor) -> Tensor:
    """[..., rows / 16, groups, 16] of the scales [..., rows, groups] of a weight of 4 bits. A row's stands beside that
    of the row 8 further on: the same threads multiply both, and read them at once."""
    *outer, rows, groups = scales.shape
    placed = scales.reshape(*outer, rows // ROWS, 2, ROWS // 2, groups).movedim(-1, -3)
    return placed.transpose(-2, -1).flatten(-2).contiguous()


def scales_from_panels(panels: Tensor) -> Tensor:
    """The scales [..., rows, groups] again."""
    *outer, panel, groups, rows = panels.shape
    return panels.reshape(*outer, panel, groups, rows // 2, 2).movedim(-3, -1).transpose(-3, -2).flatten(-4, -2)
