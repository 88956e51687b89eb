"""Rows off a tree's trunk, for the attention kernels: which of a tile's rows they are, and where their keys lie.

The keys of such a row's ancestors lie in the slots of those rows, not one behind the other. In the splits of keys from
the cursor on, of which sixteen rows reach two at most, each of these rows has its keys gathered for it alone: into the
places where they stand in plain decoding, whose sums it then has bit for bit.
"""

from __future__ import annotations

from math import gcd

from .jit import MAX_ROWS, cdiv, jit, tl

TREE_ROWS = tl.constexpr(MAX_ROWS) if tl else MAX_ROWS

IN_ORDER = tl.constexpr(0xFEDCBA9876543210 - 2**64) if tl else 0xFEDCBA9876543210 - 2**64
"""The path of a chain, packed."""


def most_branches(tile: int, group: int) -> int:
    """How many rows of ``group`` heads each have a part in a tile, at most; the first row is never off the trunk."""
    return min(cdiv(group - gcd(group, tile) + tile, group), MAX_ROWS - 1)


@jit
def branch_rows(
    first_packed: tl.tensor, num_rows: tl.tensor, trunk: tl.tensor, GROUP: tl.constexpr, TILE: tl.constexpr
) -> tuple[tl.tensor, tl.tensor]:
    """Of the rows that have a part in a tile, the first off the trunk and how many there are."""
    first = tl.maximum(trunk, first_packed // GROUP)
    behind = tl.minimum(num_rows, (first_packed + TILE - 1) // GROUP + 1)
    return first, tl.maximum(behind - first, 0)


@jit
def pack(numbers: tl.tensor, first: tl.tensor) -> tl.tensor:
    """Sixteen numbers below 16, of rows or by depth, from a ``first`` one on, as one that stays in registers."""
    place = tl.arange(0, TREE_ROWS)
    return tl.sum(tl.load(numbers + (first + place)).to(tl.int64) << (4 * place), 0)


@jit
def unpack(numbers: tl.tensor, place: tl.tensor) -> tl.tensor:
    """Some of the packed ones, by their places."""
    return ((numbers >> (4 * place)) & 15).to(tl.int32)
