"""Kernels of ``attention.py`` for layers that see everything: the splits, then their sum. Queries are the rows of both
products, always 64 for each four warps: on Hopper a smaller tile is multiplied in another way, and bits would depend on
the rows. A key is read once for the whole tile."""

from __future__ import annotations

from ...shared.sinks import sink_score
from ...toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ...toolchain.jit import MAX_ROWS, SIMULATED, dot, jit, tl
from ..products.prefetch import prefetch_into_l2
from .add_splits import Parts
from .branches import IN_ORDER, TREE_ROWS, branch_rows, pack, unpack

MOST_SPLITS = tl.constexpr(64) if tl else 64
"""The most splits into which one row's keys are cut."""
LAST_ROW = tl.constexpr(MAX_ROWS - 1) if tl else MAX_ROWS - 1


@jit
def add_keys(
    scores: tl.tensor, visible: tl.tensor, values: tl.tensor, highest: tl.tensor, total: tl.tensor, mixed: tl.tensor
) -> tuple[tl.tensor, tl.tensor, tl.tensor]:
    """Adds keys with ``scores`` [TILE, KEYS], where ``visible``, and ``values`` [KEYS, VALUES] to the unnormalised
    softmax so far: its highest score [TILE], its sum [TILE] and its mix [TILE, VALUES]."""
    scores = tl.where(visible, scores, float("-inf"))
    now_highest = tl.maximum(highest, tl.max(scores, 1))
    # Before a row's first visible key the highest score is -inf, and a difference of two would be no number.
    shift = tl.where(now_highest == float("-inf"), 0.0, now_highest)
    fading = tl.exp2(highest - shift)
    weights = tl.exp2(scores - shift[:, None])
    total = total * fading + tl.sum(weights, 1)
    return now_highest, total, dot(weights.to(values.dtype), values, mixed * fading[:, None])


@jit
def split_size(last_key: tl.tensor, SPLIT: tl.constexpr) -> tl.tensor:
    """Keys in each split of a row that sees keys up to ``last_key``: ``SPLIT``, doubled until MOST_SPLITS hold all.
    It has no loop: behind one it isn't plain to the compiler that every program waits."""
    times = last_key // (SPLIT * MOST_SPLITS)
    doubled = (times.to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 126  # the number of its bits
    return (last_key * 0 + SPLIT) << tl.maximum(doubled, 0)


@jit
def _split_in_tree(
    item: tl.tensor,
    size: tl.tensor,
    first_packed: tl.tensor,
    cursor: tl.tensor,
    rows: tl.tensor,
    depths: tl.tensor,
    paths: tl.tensor,
    trunk: tl.tensor,
    GROUP: tl.constexpr,
    SPLIT: tl.constexpr,
    TILE: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor, tl.tensor, tl.tensor, tl.tensor, tl.tensor]:
    """What a program attends to in a round with a tree of guesses. The trunk is the chain of first guesses; a row off
    it sees the context and its own ancestors. Splits of ``size`` keys are numbered: first those that all rows read,
    then those with each branch's own keys, from the cursor on.

    Returns the cursor's value; which keys' split ``item`` is; the position behind its last key; the rows that it is
    for, a bit each; the depths of all rows, four bits each (``pack``); and the rows that stand behind the cursor for
    this branch, packed alike. All are scalars, so that they stay in registers."""
    cursor_value = tl.load(cursor)
    num_rows = tl.load(rows)
    trunk_rows = tl.load(trunk)
    depth = pack(depths, 0)
    path = depth * 0 + IN_ORDER
    behind = cursor_value + num_rows
    split = item
    branch = item * 0 - 1
    first, branches = branch_rows(first_packed, num_rows, trunk_rows, GROUP, TILE)
    number = item - tl.cdiv(tl.minimum(behind, MOST_SPLITS * size), size)
    if number >= 0:
        second = (number >= branches).to(tl.int32)
        branch = first + number - second * branches
        split = cursor_value // size + second
        path = pack(paths, branch * TREE_ROWS)
        behind = cursor_value + unpack(depth, branch) + 1
    row = tl.arange(0, TREE_ROWS)
    last_key = cursor_value + tl.load(depths + row)
    seen = MOST_SPLITS * size
    mine = (row < num_rows) & (last_key < seen) & ((2 * last_key >= seen) | (size == SPLIT))
    shared = (row < trunk_rows) | (split * size + size <= cursor_value)
    mine = mine & tl.where(branch < 0, shared, (row == branch) & (split * size <= last_key))
    whose = tl.sum(mine.to(tl.int32) << row, 0)
    return cursor_value, split, tl.where(whose != 0, behind, 0), whose, depth, path


@jit
def _attend_one_split(
    projected: tl.tensor, k: tl.tensor, v: tl.tensor, highest_out: tl.tensor, total_out: tl.tensor,
    mixed_out: tl.tensor, cursor: tl.tensor, num_rows: tl.tensor, behind: tl.tensor, size: tl.tensor, split: tl.tensor,
    kv_row: tl.tensor, row_stride: tl.tensor, first_part: tl.tensor, first_packed: tl.tensor, first_value: tl.tensor,
    scale: tl.tensor, zero: tl.tensor, whose: tl.tensor, depths: tl.tensor, path: tl.tensor,
    GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr, SPLIT: tl.constexpr, KEYS: tl.constexpr,
    TILE: tl.constexpr, VALUES: tl.constexpr, ALONE: tl.constexpr,
) -> None:  # fmt: skip
    """Attends the rows of a tile to the keys of one split, up to position ``behind`` exclusive; stores the highest
    score, the sum of weights and the mix of values of each. Only rows whose splits have ``size`` keys take part.
    In a tree with packed ``depths`` the rows are ``whose``, and keys from the cursor on are those of the packed
    ``path``. A step without a visible key changes no bit: factors exactly 1, terms exactly 0."""
    packed = first_packed + tl.arange(0, TILE)
    row = packed // GROUP
    query = row * row_stride + (tl.program_id(0) * GROUP + packed % GROUP) * HEAD_DIM
    # A row whose splits are larger sees more keys than so many splits of this size hold, and one whose splits are
    # smaller at most half of them.
    seen = MOST_SPLITS * size
    if ALONE:  # as below, for the row whose splits have this size; the sums need the registers
        query = (tl.program_id(0) * GROUP + packed) * HEAD_DIM
        last_key = cursor + packed * 0
        mine = packed < GROUP
        loaded = mine
    elif depths is None:
        last_key = cursor + (row if CAUSAL else num_rows - 1)
        mine = (row < num_rows) & (last_key < seen) & ((2 * last_key >= seen) | (size == SPLIT))
        loaded = mine
    else:
        last_key = cursor + unpack(depths, tl.minimum(row, LAST_ROW))
        loaded = row < num_rows
        mine = (row < num_rows) & (((whose >> tl.minimum(row, LAST_ROW)) & 1) != 0)
    start = split * size
    end = tl.minimum(start + size, behind)
    lane = tl.arange(0, HEAD_DIM)
    value = first_value + tl.arange(0, VALUES)
    queries = tl.load(projected + query[:, None] + lane[None, :], mask=loaded[:, None], other=0.0)
    highest = tl.full((TILE,), float("-inf"), tl.float32)
    total = tl.zeros((TILE,), tl.float32)
    mixed = tl.zeros((TILE, VALUES), tl.float32)
    for first in range(start, end, KEYS):
        key = first + tl.arange(0, KEYS)
        exists = key < end
        slot = key
        if depths is not None:
            depth = tl.minimum(tl.maximum(key - cursor, 0), LAST_ROW)
            slot = tl.where(key < cursor, key, cursor + unpack(path, depth))
        stored = (kv_row + slot)[:, None] * HEAD_DIM
        keys = tl.load(k + stored + lane[None, :], mask=exists[:, None], other=0.0)
        scores = dot(queries, keys.T, tl.zeros((TILE, KEYS), tl.float32)) * scale
        visible = exists[None, :] & mine[:, None]
        if CAUSAL:
            visible = visible & (key[None, :] <= last_key[:, None])
        values = tl.load(v + stored + value[None, :], mask=exists[:, None], other=0.0)
        highest, total, mixed = add_keys(scores, visible, values, highest, total, mixed)
    if depths is not None:
        # Computed again, as far as the compiler can tell; it would otherwise keep them for each row while keys stream.
        packed += zero
        row = packed // GROUP
        mine = (row < num_rows) & (((whose >> tl.minimum(row, LAST_ROW)) & 1) != 0)
    at = first_part + packed
    tl.store(highest_out + at, highest, mask=mine)  # the programs for the other parts of the values store the same
    tl.store(total_out + at, total, mask=mine)
    tl.store(mixed_out + at[:, None] * HEAD_DIM + value[None, :], mixed, mask=mine[:, None])


@jit
def _ask_for(
    store: tl.tensor, kv_row: tl.tensor, first: tl.tensor, behind: tl.tensor, channel: tl.tensor,
    CHANNELS: tl.constexpr, KEYS: tl.constexpr, HEAD_DIM: tl.constexpr,
) -> None:  # fmt: skip
    """Prefetches channels ``channel`` .. of KEYS keys, or values, from position ``first`` on, of those before
    ``behind``."""
    if not SIMULATED:
        line: tl.constexpr = min(CHANNELS, 128 * 8 // store.dtype.element_ty.primitive_bitwidth)
        key = first + tl.arange(0, KEYS)[:, None]
        lane = channel + tl.arange(0, CHANNELS // line)[None, :] * line
        asks = (key < behind) & (lane >= 0)
        prefetch_into_l2((store + (kv_row + key) * HEAD_DIM + lane).to(tl.int64), asks.to(tl.int32))


@early_kernel
def _attend_full(
    projected: tl.tensor, k: tl.tensor, v: tl.tensor, highest_out: tl.tensor, total_out: tl.tensor,
    mixed_out: tl.tensor, cursor: tl.tensor, rows: tl.tensor, capacity: tl.tensor, row_stride: tl.tensor,
    splits: tl.tensor, scale: tl.tensor, depths: tl.tensor, paths: tl.tensor, trunk: tl.tensor,
    GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr, SPLIT: tl.constexpr, KEYS: tl.constexpr,
    TILE: tl.constexpr, VALUES: tl.constexpr, GROUP_ROWS: tl.constexpr, ALONE: tl.constexpr,
) -> None:  # fmt: skip
    """A program for each (key head, every so many-th split, tile of (query row, head of group) and part of the values).
    Rows may have splits of two sizes: keys are then read once for each. ``ALONE``: at most one row. ``depths``,
    ``paths`` and ``trunk`` are a ``TreeRows``', or None for a chain; rows off the trunk have up to two splits of their
    own, which come last."""
    kv_head = tl.program_id(0)
    tiles = tl.num_programs(2) // (HEAD_DIM // VALUES)
    first_packed = tl.program_id(2) % tiles * TILE
    first_value = tl.program_id(2) // tiles * VALUES
    cursor_value = tl.load(cursor)
    num_rows = tl.load(rows)
    branches = 0
    if depths is not None:
        _, branches = branch_rows(first_packed, num_rows, tl.load(trunk), GROUP, TILE)
    end = cursor_value + num_rows
    largest = split_size(end - 1, SPLIT)
    size = split_size(cursor_value, SPLIT) if CAUSAL else largest
    # Keys before the cursor are older than the launch before this one.
    first_key = tl.program_id(1) * size
    _ask_for(k, kv_head * capacity, first_key, cursor_value, 0, HEAD_DIM, KEYS, HEAD_DIM)
    _ask_for(v, kv_head * capacity, first_key, cursor_value, first_value, VALUES, KEYS, HEAD_DIM)
    wait_for_inputs()
    let_next_start()  # all its programs run by now, and those of the next kernel only wait
    if first_packed < num_rows * GROUP:
        while size <= largest:
            split = tl.program_id(1)
            limit = tl.minimum(end, MOST_SPLITS * size)
            if depths is not None:
                limit += 2 * branches * size
            while split * size < limit:
                this = split
                here = cursor_value
                behind = end
                whose = None
                depth = None
                path = None
                if depths is not None:
                    here, this, behind, whose, depth, path = _split_in_tree(
                        split, size, first_packed, cursor, rows, depths, paths, trunk, GROUP, SPLIT, TILE
                    )
                # No number of rows is negative, which the compiler doesn't know: it would keep every row's address in
                # registers that the sums need. One row has few.
                # in registers that the sums need. One row's are few.
                zero = 0 if ALONE else tl.load(rows) >> 31
                _attend_one_split(
                    projected, k, v, highest_out, total_out, mixed_out, here, num_rows, behind, size, this,
                    kv_head * capacity, row_stride, (kv_head * splits + this) * GROUP_ROWS, first_packed + zero,
                    first_value, scale, zero, whose, depth, path, GROUP, HEAD_DIM, CAUSAL, SPLIT, KEYS, TILE, VALUES,
                    ALONE,
                )  # fmt: skip
                split += tl.num_programs(1)
            size *= 2


@early_kernel
def _combine_splits(
    highest_in: tl.tensor, total_in: tl.tensor, mixed_in: tl.tensor, sinks: tl.tensor, out: tl.tensor,
    cursor: tl.tensor, rows: tl.tensor, splits: tl.tensor, depths: tl.tensor,
    GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr, SPLIT: tl.constexpr, LANES: tl.constexpr,
    GROUP_ROWS: tl.constexpr, FEW: tl.constexpr,
) -> None:  # fmt: skip
    """Add what the splits of a row's keys gave: a program for each (row, head, ``LANES`` numbers of the head). Up to
    ``FEW`` splits are added one behind the other, more side by side, which changes the last bits: so the row's own
    number of splits alone decides, and a row has the same bits in every pass. ``CAUSAL``: a row sees keys up to its
    own. ``GROUP_ROWS`` partial sums stand between two splits'. ``depths``: int32 of a tree's rows, or None; ``sinks``:
    a logit for each head that takes part in the softmax, if there are any."""
    row = tl.program_id(0)
    head = tl.program_id(1)
    lane = tl.program_id(2) * LANES + tl.arange(0, LANES)
    num_rows = tl.load(rows)
    cursor_value = tl.load(cursor)
    depth = row
    if depths is not None:
        depth = tl.load(depths + row)
    wait_for_inputs()
    if row < num_rows:
        last_key = cursor_value + depth if CAUSAL else cursor_value + num_rows - 1
        count = last_key // split_size(last_key, SPLIT) + 1
        first_part = (head // GROUP) * splits * GROUP_ROWS + row * GROUP + head % GROUP
        parts = Parts(highest_in, total_in, mixed_in)
        if count <= FEW:
            total, mixed = _add_few(parts, sinks, head, first_part, lane, count, HEAD_DIM, GROUP_ROWS, FEW)
        else:
            total, mixed = _add_all(parts, sinks, head, first_part, lane, count, HEAD_DIM, GROUP_ROWS)
        address = (row * tl.num_programs(1) + head) * HEAD_DIM + lane
        tl.store(out + address, (mixed / total).to(out.dtype.element_ty))


@jit
def _add_few(
    parts: Parts, sinks: tl.tensor, head: tl.tensor, first_part: tl.tensor, lane: tl.tensor, count: tl.tensor,
    HEAD_DIM: tl.constexpr, GROUP_ROWS: tl.constexpr, MOST: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:  # fmt: skip
    """One row's sum of weights, and what its splits mix of these lanes: added in order, each lane by itself, so that no
    thread waits for another. As in ``add_splits.py``, ``tl.fma`` says which product is fused."""
    highest = first_part * 0.0 + float("-inf")
    total = first_part * 0.0
    if sinks is not None:
        highest = sink_score(sinks, head)
        total += 1.0
    mixed = lane * 0.0
    loaded = ()
    for split in tl.static_range(MOST):
        there = split < count
        at = first_part + split * GROUP_ROWS
        of_split = tl.load(parts.highest + at, mask=there, other=float("-inf"))
        totals = tl.load(parts.total + at, mask=there, other=0.0)
        values = tl.load(parts.mixed + at * HEAD_DIM + lane, mask=there, other=0.0)
        loaded += ((of_split, totals, values),)  # type: ignore[assignment]
    let_next_start()
    for split in tl.static_range(MOST):
        of_split, totals, values = loaded[split]
        now_highest = tl.maximum(highest, of_split)
        fading = tl.exp2(highest - now_highest)
        factor = tl.exp2(of_split - now_highest)
        total = tl.fma(total, fading, totals * factor)
        mixed = tl.fma(mixed, fading, values * factor)
        highest = now_highest
    return total, mixed


@jit
def _add_all(
    parts: Parts, sinks: tl.tensor, head: tl.tensor, first_part: tl.tensor, lane: tl.tensor, count: tl.tensor,
    HEAD_DIM: tl.constexpr, GROUP_ROWS: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:  # fmt: skip
    """``_add_few`` for up to MOST_SPLITS: all are loaded at once and added in one order."""
    split = tl.arange(0, MOST_SPLITS)
    covered = split < count
    at = first_part + split * GROUP_ROWS
    highest = tl.load(parts.highest + at, mask=covered, other=float("-inf"))
    totals = tl.load(parts.total + at, mask=covered, other=0.0)
    values = tl.load(parts.mixed + at[:, None] * HEAD_DIM + lane[None, :], mask=covered[:, None], other=0.0)
    let_next_start()
    peak = tl.max(highest, 0)
    if sinks is not None:
        sink = sink_score(sinks, head)
        peak = tl.maximum(peak, sink)
    factor = tl.exp2(highest - peak)
    mixed = tl.sum(factor[:, None] * values, 0)
    total = tl.sum(factor * totals, 0)
    if sinks is not None:
        total += tl.exp2(sink - peak)
    return total, mixed
