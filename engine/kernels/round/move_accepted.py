"""Moves a tree's accepted rows, in one launch, to where a chain's keys, values and features would stand."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import torch
from torch import Tensor

from ...kv_cache.layer_cache import LayerCache
from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import MAX_ROWS, tl
from .accept import AcceptedPath
from .state import constant

UNIT = 8
"""Distances and strides are counted in units of this many elements, 16 bytes or more: what one thread moves at a
time."""
_UNIT = constant(UNIT)
WIDEST = 256
"""The most columns of one program."""
FIELDS = constant(4)
DISTANCE, STRIDE, CAPACITY, AT_CURSOR = (constant(field) for field in range(4))
"""The table's entries for each program's columns: units from the first tensor on; units from a slot to the next; how
many slots there are, in a ring; whether row 0 is the cursor's slot, as in a cache, or the first."""


def reference_move(store: Tensor, path: Sequence[int], before: int) -> None:
    """Copies slot before + path[i] of store [heads, capacity, head_dim] to slot before + i, in a ring; ``path`` starts
    with the anchor's 0."""
    slots = [(before + row) % store.shape[1] for row in path]
    store[:, [(before + row) % store.shape[1] for row in range(len(path))]] = store[:, slots]


class RowStores:
    """All that a target pass leaves of its rows: every layer's keys and values, and features. The kernel finds them by
    their distance from the first, so addresses must stay."""

    def __init__(self, caches: Sequence[LayerCache], features: Tensor):
        """``features`` [17, columns] hold those of the pass's rows, in order."""
        self.first = caches[0].k
        self.stores = [store for cache in caches for store in (cache.k, cache.v)]
        """All caches' keys and values: held, as ``features`` are, so that their memory stays, since the kernel is given
        the first alone."""
        self.features = features
        self.columns = gcd(WIDEST, features.shape[1], *(store.shape[-1] for store in self.stores))
        """Columns of one program."""
        assert self.columns % UNIT == 0
        pieces = [self._piece(head, True) for store in self.stores for head in store]
        self.table = torch.cat([*pieces, self._piece(features, False)]).to(self.first.device)
        """int64 [programs, 4], by the entries ``DISTANCE`` to ``AT_CURSOR``."""

    def _piece(self, slots: Tensor, at_cursor: bool) -> Tensor:
        """The table's entries for slots [capacity, columns], on the host."""
        assert slots.dtype == self.first.dtype and slots.stride(1) == 1
        start = slots.data_ptr() - self.first.data_ptr()
        distance, left = divmod(start // slots.itemsize, UNIT)
        assert left == 0 and start % slots.itemsize == 0 and slots.stride(0) % UNIT == 0
        count, capacity = slots.shape[1] // self.columns, slots.shape[0]
        distances = distance + torch.arange(count) * (self.columns // UNIT)
        others = torch.tensor([slots.stride(0) // UNIT, capacity, at_cursor]).repeat(count, 1)
        return torch.cat((distances[:, None], others), 1)


def move_accepted(stores: RowStores, path: AcceptedPath) -> None:
    """Moves the accepted rows of all stores as ``reference_move`` does; features are a store at cursor 0. Rows move
    only towards the front, and a program reads all of its rows before it writes. Nothing moves along the trunk or after
    the end."""
    _move_accepted[(stores.table.shape[0],)](
        stores.first, stores.table, path.rows, path.count, path.before,
        COLUMNS=stores.columns, num_warps=4,
    )  # fmt: skip


@early_kernel
def _move_accepted(
    first: tl.tensor,
    table: tl.tensor,
    path_rows: tl.tensor,
    path_count: tl.tensor,
    path_before: tl.tensor,
    COLUMNS: tl.constexpr,
) -> None:
    """A program for each piece: one head's rows, or some columns of the features'."""
    entry = table + tl.program_id(0) * FIELDS
    distance = tl.load(entry + DISTANCE)
    stride = tl.load(entry + STRIDE)
    capacity = tl.load(entry + CAPACITY)
    at_cursor = tl.load(entry + AT_CURSOR)
    wait_for_inputs()
    lane = tl.arange(0, 16)
    row = tl.load(path_rows + lane)
    moves = (lane < tl.load(path_count)) & (row != lane)
    before = tl.load(path_before) * at_cursor
    if tl.max(moves.to(tl.int32), 0) > 0:
        base = first + distance * _UNIT
        column = tl.arange(0, COLUMNS)[None, :]
        source = ((before + row) % capacity) * stride * _UNIT
        target = ((before + lane) % capacity) * stride * _UNIT
        values = tl.load(base + source[:, None] + column, mask=moves[:, None], other=0.0)
        let_next_start()
        # Different warps move the rows of a tile: all must have read theirs before one writes.
        tl.debug_barrier()
        tl.store(base + target[:, None] + column, values, mask=moves[:, None])


assert MAX_ROWS == 16, "the kernel above is written for tiles of 16 rows"
