"""Experts of a pass of several tiles of 16 rows: each tile chooses by itself, then all choices become one list, so that
an expert is read once for all rows. Its pairs stand in tiles of 16, whatever rows they come from; a pair's sums don't
depend on its neighbours, so a row has the same bits as among sixteen."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ...toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ...toolchain.jit import MAX_ROWS, power_of_two, tl
from .router import Assignment, entries_of


@dataclass(frozen=True, slots=True)
class WideAssignment:
    """Which experts a pass of several tiles of 16 rows runs: for each tile, and for all together."""

    tiles: Assignment
    """The assignments of all tiles, stacked along a first dimension; pairs are numbered within a tile."""
    together: Assignment
    """The assignment of all rows, as a tile's but with more entries: an expert with more than 16 pairs has several, one
    behind the other."""

    @classmethod
    def allocate(
        cls, num_tiles: int, num_experts: int, top_k: int, device: torch.device, most: int = MAX_ROWS
    ) -> WideAssignment:
        """``most``: the most pairs of an entry of a tile, as in any pass of sixteen rows."""
        weights, entries = torch.zeros(num_tiles * MAX_ROWS, top_k, device=device), entries_of(num_experts, top_k, most)
        tiles = Assignment(
            torch.full((num_tiles, entries), -1, dtype=torch.int32, device=device),
            torch.full((num_tiles, entries, MAX_ROWS), -1, dtype=torch.int32, device=device),
            weights.view(num_tiles, MAX_ROWS, top_k),
            most,
        )
        slots = num_experts + num_tiles * top_k
        together = Assignment(
            torch.full((slots,), -1, dtype=torch.int32, device=device),
            torch.full((slots, MAX_ROWS), -1, dtype=torch.int32, device=device),
            weights,
        )
        return cls(tiles, together)

    def tile(self, number: int) -> Assignment:
        """The assignment that one tile's router fills; its weights are a part of those of ``together``."""
        tiles = self.tiles
        return Assignment(tiles.experts[number], tiles.pairs[number], tiles.weights[number], tiles.most)

    def first(self, num_tiles: int) -> WideAssignment:
        """That of fewer tiles, whose list is as long: the experts' kernels are compiled for its length."""
        tiles, together = self.tiles, self.together
        return WideAssignment(
            Assignment(tiles.experts[:num_tiles], tiles.pairs[:num_tiles], tiles.weights[:num_tiles], tiles.most),
            Assignment(together.experts, together.pairs, together.weights[: num_tiles * MAX_ROWS]),
        )


def merge_assignments(wide: WideAssignment) -> None:
    """Makes ``together`` of what the ``tiles`` chose: experts in order of their ids, pairs in order of rows."""
    num_tiles, entries = wide.tiles.experts.shape
    slots = len(wide.together.experts)
    _merge_choices[(entries,)](
        wide.tiles.experts, wide.tiles.pairs, wide.together.experts, wide.together.pairs,
        TILES=num_tiles, ENTRIES=entries, MOST=wide.tiles.most, TOP_K=wide.together.weights.shape[1],
        BLOCK=power_of_two(entries), SLOTS=slots, SLOTS_BLOCK=power_of_two(slots), num_warps=8,
    )  # fmt: skip


@early_kernel
def _merge_choices(
    experts: tl.tensor, pairs: tl.tensor, experts_out: tl.tensor, pairs_out: tl.tensor,
    TILES: tl.constexpr, ENTRIES: tl.constexpr, MOST: tl.constexpr, TOP_K: tl.constexpr, BLOCK: tl.constexpr,
    SLOTS: tl.constexpr, SLOTS_BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """A program for each expert: of a tile's entries there are no fewer. Each counts all pairs, to know how many
    entries come before its own."""
    wait_for_inputs()
    let_next_start()
    expert = tl.program_id(0)
    slot = tl.arange(0, BLOCK)
    lane = tl.arange(0, 16)
    exists = slot < ENTRIES
    counts = tl.zeros((BLOCK,), tl.int32)
    for tile in tl.static_range(TILES):
        listed = tl.load(experts + tile * ENTRIES + slot, mask=exists, other=-1)
        places = (tile * ENTRIES + slot)[:, None] * 16 + lane[None, :]
        pair = tl.load(pairs + places, mask=(listed >= 0)[:, None], other=-1)
        count = tl.sum((pair >= 0).to(tl.int32), 1)
        counts += tl.sum(tl.where(listed[None, :] == slot[:, None], count[None, :], 0), 1)
    entries = (counts + 15) // 16
    first = tl.sum(tl.where(slot < expert, entries, 0), 0)
    own = tl.sum(tl.where(slot == expert, counts, 0), 0)
    before = 0
    for tile in tl.static_range(TILES):
        listed = tl.load(experts + tile * ENTRIES + slot, mask=exists, other=-1)
        here = tl.min(tl.where(listed == expert, slot, BLOCK), 0) + lane // MOST  # its entries stand side by side
        last = tl.max(tl.where(listed == expert, slot, -1), 0)
        pair = tl.load(pairs + (tile * ENTRIES + here) * 16 + lane % MOST, mask=here <= last, other=-1)
        tl.store(pairs_out + first * 16 + before + lane, pair + tile * 16 * TOP_K, mask=pair >= 0)
        before += tl.sum((pair >= 0).to(tl.int32), 0)
    for tile in tl.static_range(TILES):
        inside = tile * 16 < own
        tl.store(experts_out + first + tile, expert, mask=inside)
        row = tile * 16 + lane
        tl.store(pairs_out + first * 16 + row, -1, mask=inside & (row >= own))
    if expert == 0:
        behind = tl.arange(0, SLOTS_BLOCK)
        tl.store(experts_out + behind, -1, mask=(behind >= tl.sum(entries, 0)) & (behind < SLOTS))


assert MAX_ROWS == 16, "the kernel above is written for tiles of 16 rows"
