"""Finds, for attention, the rows of a tile that are off a tree's trunk, and where their keys lie. Their ancestors' keys
are scattered over slots; in the splits from the cursor on (two at most) keys are gathered for each such row into the
places of plain decoding, whose bits the sums then have."""

from __future__ import annotations

from math import gcd

from ...toolchain.jit import MAX_ROWS, cdiv, jit, tl

TREE_ROWS = tl.constexpr(MAX_ROWS) if tl else MAX_ROWS

IN_ORDER = tl.constexpr(0xFEDCBA9876543210 - 2**64) if tl else 0xFEDCBA9876543210 - 2**64
"""The path of a chain, packed: 0, 1, ..., 15."""


def most_branches(tile: int, group: int) -> int:
    """The most rows off the trunk, of ``group`` heads each, that have a part in a tile; the first row is never one."""
    return min(cdiv(group - gcd(group, tile) + tile, group), MAX_ROWS - 1)


@jit
def branch_rows(
    first_packed: tl.tensor, num_rows: tl.tensor, trunk: tl.tensor, GROUP: tl.constexpr, TILE: tl.constexpr
) -> tuple[tl.tensor, tl.tensor]:
    """The first of a tile's rows that is off the trunk, and how many there are."""
    first = tl.maximum(trunk, first_packed // GROUP)
    behind = tl.minimum(num_rows, (first_packed + TILE - 1) // GROUP + 1)
    return first, tl.maximum(behind - first, 0)


@jit
def pack(numbers: tl.tensor, first: tl.tensor) -> tl.tensor:
    """Packs sixteen numbers below 16, of rows or by depth, from ``first`` on, into one that stays in a register."""
    lane = tl.arange(0, TREE_ROWS)
    return tl.sum(tl.load(numbers + (first + lane)).to(tl.int64) << (4 * lane), 0)


@jit
def unpack(numbers: tl.tensor, lane: tl.tensor) -> tl.tensor:
    return ((numbers >> (4 * lane)) & 15).to(tl.int32)


@jit
def split_in_window(
    splits: tl.tensor,
    cursor: tl.tensor,
    num_rows: tl.tensor,
    depths: tl.tensor,
    paths: tl.tensor,
    trunk: tl.tensor,
    GROUP: tl.constexpr,
    WINDOW: tl.constexpr,
    SPLIT: tl.constexpr,
    TILE: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor, tl.tensor, tl.tensor, tl.tensor, tl.tensor]:
    """The work of a program of ``_attend_window``: a shared split, or one of a row off the trunk. It has no jump, so it
    is known before the launch in front is done. Returns the split; the position behind its last key (0: nothing to do);
    the tile's number of programs for single rows; its rows as bits; packed depths of all rows; packed rows whose keys
    follow the cursor."""
    first_packed = tl.program_id(2) * TILE
    slot = tl.program_id(1)
    row = tl.arange(0, TREE_ROWS)
    position = cursor + tl.load(depths + row)
    trunk_rows = tl.load(trunk)
    depth = pack(depths, 0)
    first_split = tl.maximum(cursor - WINDOW + 1, 0) // SPLIT
    first_new = cursor // SPLIT
    first, branches = branch_rows(first_packed, num_rows, trunk_rows, GROUP, TILE)
    reached = tl.where((row >= first) & (row < first + branches), position // SPLIT - first_new + 1, 0)
    number = slot - splits
    alone = number >= 0
    number = tl.maximum(number, 0)
    branch = tl.minimum(first + number // 2, TREE_ROWS - 1)
    slot = tl.where(alone, first_new - first_split + number % 2, slot)
    start = (first_split + slot) * SPLIT
    is_branch = (row == branch) & (start <= position) & (number // 2 < branches)
    shared = (row < trunk_rows) | (start + SPLIT <= cursor) | (start > position)
    whose = tl.sum(tl.where(alone, is_branch, shared).to(tl.int32) << row, 0)
    path = tl.where(alone, pack(paths, branch * TREE_ROWS), IN_ORDER)
    behind = tl.where(first_packed < num_rows * GROUP, cursor + num_rows, 0)
    behind = tl.where(alone, tl.sum(tl.where(is_branch, position + 1, 0), 0), behind)
    return slot, behind, tl.sum(reached, 0), whose, depth, path
