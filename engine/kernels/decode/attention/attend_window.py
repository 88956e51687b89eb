"""Kernel of ``attention.py`` for layers with a window, with norm, rope and storing of the rows' heads. Keys are the
rows of the scores (a Hopper GPU takes 64), queries their columns; in the mix queries are rows, at most 32. (Values as
rows with narrow weights as columns read past shared memory: Triton 3.6.)"""

from __future__ import annotations

from ...shared.heads import cos_sin, inverse_rms, load_halves, norm_pairs, store_halves, turn_pairs
from ...toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ...toolchain.jit import MAX_ROWS, dot, jit, tl
from .add_splits import ALL_SPLITS, FEW_SPLITS, Parts, add_splits, add_splits_of_one_row
from .branches import split_in_window, unpack

NEW_ROWS = tl.constexpr(MAX_ROWS) if tl else MAX_ROWS


@jit
def _normed(
    x: tl.tensor, y: tl.tensor, weight: tl.tensor, eps: tl.tensor, HEAD_DIM: tl.constexpr, ROUNDED_FIRST: tl.constexpr
) -> tuple[tl.tensor, tl.tensor]:
    """Norms heads [N, HEAD_DIM], given as halves, by ``weight`` if there is one; fp32."""
    half: tl.constexpr = HEAD_DIM // 2
    pair = tl.arange(0, half)
    if weight is not None:
        x_weight = tl.load(weight + pair)[None, :]
        y_weight = tl.load(weight + half + pair)[None, :]
    x = x.to(tl.float32)
    y = y.to(tl.float32)
    if weight is not None:
        x, y = norm_pairs(x, y, inverse_rms(x, y, eps, HEAD_DIM), x_weight, y_weight, ROUNDED_FIRST)
    return x, y


@jit
def _depth(row: tl.tensor, depths: tl.tensor) -> tl.tensor:
    """How far a row stands behind the anchor: by a tree's packed ``depths``, or in a chain its own number."""
    return row if depths is None else unpack(depths, tl.minimum(row, NEW_ROWS - 1))


@jit
def _turn_of(
    cursor: tl.tensor, row: tl.tensor, depths: tl.tensor, frequencies: tl.tensor, HEAD_DIM: tl.constexpr
) -> tuple[tl.tensor, tl.tensor]:
    """Cosine and sine [rows, HEAD_DIM / 2] by which the heads of rows turn."""
    position = (cursor + _depth(row, depths)).to(tl.float32)
    return cos_sin(position[:, None] * tl.load(frequencies + tl.arange(0, HEAD_DIM // 2))[None, :])  # type: ignore[no-any-return]


@jit
def attend_split(
    queries_1: tl.tensor, queries_2: tl.tensor, keys_1: tl.tensor, keys_2: tl.tensor, values: tl.tensor, key: tl.tensor,
    exists: tl.tensor, parts: Parts, sinks: tl.tensor, arrivals: tl.tensor, out: tl.tensor, cursor: tl.tensor,
    num_rows: tl.tensor, first_split: tl.tensor, end: tl.tensor, splits: tl.tensor, scale: tl.tensor, slot: tl.tensor,
    others: tl.tensor, whose: tl.tensor, depths: tl.tensor,
    GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, WINDOW: tl.constexpr, CAUSAL: tl.constexpr, SPLIT: tl.constexpr,
    TILE: tl.constexpr, GROUP_ROWS: tl.constexpr, ADDED: tl.constexpr, ALONE: tl.constexpr,
) -> None:  # fmt: skip
    """Attends a tile's rows to the keys of one split; the tile's last program adds up its splits. Keys and values
    [SPLIT, HEAD_DIM], queries [TILE, HEAD_DIM], keys and queries as halves; ``key`` [SPLIT] are positions, ``exists``
    which of them there are. This is split ``slot`` of those from ``first_split`` to position ``end``. In a tree with
    packed ``depths`` the rows are ``whose``; a tile has a program for each split, and ``others``."""
    kv_head = tl.program_id(0)
    first_packed = tl.program_id(2) * TILE
    row = (first_packed + tl.arange(0, TILE)) // GROUP
    lane = tl.arange(0, HEAD_DIM)
    scores = dot(keys_1, queries_1.T, tl.zeros((SPLIT, TILE), tl.float32))
    scores = dot(keys_2, queries_2.T, scores) * scale
    distance = (cursor + _depth(row, depths))[None, :] - key[:, None]
    valid = row < num_rows
    if depths is not None:
        valid = valid & (((whose >> tl.minimum(row, NEW_ROWS - 1)) & 1) != 0)
    visible = exists[:, None] & valid[None, :] & (distance < WINDOW) & (distance > -WINDOW)
    if CAUSAL:
        visible = visible & (distance >= 0)
    scores = tl.where(visible, scores, float("-inf"))
    highest = tl.max(scores, 0)
    shift = tl.where(highest == float("-inf"), 0.0, highest)  # -inf where a row sees none of these keys
    weights = tl.exp2(scores - shift[None, :])
    mixed = dot(weights.to(values.dtype).T, values, tl.zeros((TILE, HEAD_DIM), tl.float32))
    first_part = kv_head * splits * GROUP_ROWS + first_packed
    at = first_part + slot * GROUP_ROWS + tl.arange(0, TILE)
    tl.store(parts.highest + at, highest, mask=valid)
    tl.store(parts.total + at, tl.sum(weights, 0), mask=valid)
    tl.store(parts.mixed + at[:, None] * HEAD_DIM + lane[None, :], mixed, mask=valid[:, None])
    arrival = arrivals + kv_head * tl.num_programs(2) + tl.program_id(2)
    count = (end - 1) // SPLIT - first_split + 1
    let_next_start()
    tl.debug_barrier()  # one thread's arrival speaks for the stores of all
    if tl.atomic_add(arrival, 1, sem="acq_rel") == count + others - 1:
        tl.store(arrival, 0)  # zero again, for the next launch
        if not ALONE:
            num_packed = tl.minimum(num_rows * GROUP - first_packed, TILE)
            add_splits(
                parts, sinks, out, first_part, first_packed, num_packed, count, GROUP, HEAD_DIM, GROUP_ROWS, ADDED
            )
        elif count <= FEW_SPLITS:
            add_splits_of_one_row(parts, sinks, out, first_part, count, GROUP, HEAD_DIM, GROUP_ROWS, ADDED, FEW_SPLITS)
        else:
            add_splits_of_one_row(parts, sinks, out, first_part, count, GROUP, HEAD_DIM, GROUP_ROWS, ADDED, ALL_SPLITS)


@early_kernel
def _attend_window(
    projected: tl.tensor, q_weight: tl.tensor, k_weight: tl.tensor, frequencies: tl.tensor, sinks: tl.tensor,
    k: tl.tensor, v: tl.tensor, highest_out: tl.tensor, total_out: tl.tensor, mixed_out: tl.tensor, arrivals: tl.tensor,
    out: tl.tensor, cursor: tl.tensor, rows: tl.tensor, capacity: tl.tensor, splits: tl.tensor, eps: tl.tensor,
    scale: tl.tensor, row_stride: tl.tensor, depths: tl.tensor, paths: tl.tensor, trunk: tl.tensor,
    GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, VALUE_IS_KEY: tl.constexpr, ROUNDED_FIRST: tl.constexpr,
    NORM_VALUES: tl.constexpr, WINDOW: tl.constexpr, CAUSAL: tl.constexpr, SPLIT: tl.constexpr, TILE: tl.constexpr,
    GROUP_ROWS: tl.constexpr, ADDED: tl.constexpr,
) -> None:  # fmt: skip
    """A program for each (key head, split, tile of (query row, head of group)): unnormalised softmax; a tile's last
    program adds its splits. ``depths``, ``paths`` and ``trunk`` are a ``TreeRows``', or None for a chain. Behind them
    stand two programs for each row that may be off the trunk, for the splits with keys from the cursor on, which others
    leave out."""
    kv_head = tl.program_id(0)
    kv_heads = tl.num_programs(0)
    first_packed = tl.program_id(2) * TILE
    packed = first_packed + tl.arange(0, TILE)
    row = packed // GROUP
    half: tl.constexpr = HEAD_DIM // 2
    lane = tl.arange(0, HEAD_DIM)
    pair = tl.arange(0, half)
    new_row = tl.arange(0, NEW_ROWS)
    cursor_value = tl.load(cursor)
    num_rows = tl.load(rows)
    slot = tl.program_id(1)
    others = 0
    whose = None
    depth = None
    if depths is not None:
        slot, key_end, others, whose, depth, path = split_in_window(
            splits, cursor_value, num_rows, depths, paths, trunk, GROUP, WINDOW, SPLIT, TILE
        )
    end = tl.where(first_packed < num_rows * GROUP, cursor_value + num_rows, 0)
    first_split = tl.maximum(cursor_value - WINDOW + 1, 0) // SPLIT
    start = (first_split + slot) * SPLIT
    if depths is None:
        key_end = end
    # The angles of queries and new keys are known before they are. (Not those of a tree's queries: no registers are
    # left.)
    new_cos = new_row[:, None] * 0.0 + pair[None, :] * 0.0
    new_sin = new_cos
    if (start < key_end) & (start + SPLIT > cursor_value):
        new_cos, new_sin = _turn_of(cursor_value, new_row, depth, frequencies, HEAD_DIM)
    cos = row[:, None] * 0.0 + pair[None, :] * 0.0
    sin = cos
    if depths is None:  # noqa: SIM102 (the compiler looks into both sides of an "and")
        if start < key_end:
            cos, sin = _turn_of(cursor_value, row, depth, frequencies, HEAD_DIM)
    wait_for_inputs()
    if depths is not None:  # noqa: SIM102 (the compiler looks into both sides of an "and")
        if start >= key_end:
            return
    # Loaded before it is known which rows count, and whose keys: memory's latency is paid once.
    query = tl.minimum(row, NEW_ROWS - 1) * row_stride + (kv_head * GROUP + packed % GROUP) * HEAD_DIM
    queries_1, queries_2 = load_halves(projected + query, HEAD_DIM)
    new_key = projected + new_row * row_stride + (kv_heads * GROUP + kv_head) * HEAD_DIM
    new_keys_1, new_keys_2 = load_halves(new_key, HEAD_DIM)
    new_values_1, new_values_2 = load_halves(new_key + (0 if VALUE_IS_KEY else kv_heads * HEAD_DIM), HEAD_DIM)
    if start < key_end:
        if start + SPLIT > cursor_value:
            # New keys are there. Another program may store the same rows, with the same bits.
            at = (kv_head * capacity + (cursor_value + new_row) % capacity) * HEAD_DIM
            live = new_row < num_rows
            x, y = _normed(new_keys_1, new_keys_2, k_weight, eps, HEAD_DIM, ROUNDED_FIRST)
            x, y = turn_pairs(x, y, new_cos, new_sin)
            store_halves(k + at, x, y, live, HEAD_DIM)
            if NORM_VALUES:
                x = new_values_1.to(tl.float32)
                y = new_values_2.to(tl.float32)
                inverse = inverse_rms(x, y, eps, HEAD_DIM)
                store_halves(v + at, x * inverse, y * inverse, live, HEAD_DIM)
            else:
                store_halves(v + at, new_values_1, new_values_2, live, HEAD_DIM)
            tl.debug_barrier()  # other threads load what one thread stored
        key = start + tl.arange(0, SPLIT)
        exists = (key < key_end) & (key > cursor_value - WINDOW)
        stored = start % capacity + tl.arange(0, SPLIT)
        if depths is not None:
            at = tl.minimum(tl.maximum(key - cursor_value, 0), NEW_ROWS - 1)
            stored = tl.where(key < cursor_value, stored, cursor_value % capacity + unpack(path, at))
        stored = tl.where(stored < capacity, stored, stored - capacity)
        address = (kv_head * capacity + stored)[:, None] * HEAD_DIM
        keys_1 = tl.load(k + address + pair[None, :], mask=exists[:, None], other=0.0)
        keys_2 = tl.load(k + address + half + pair[None, :], mask=exists[:, None], other=0.0)
        values = tl.load(v + address + lane[None, :], mask=exists[:, None], other=0.0)
        # The compiler moves no load past a barrier: all are under way while the queries are normed.
        tl.debug_barrier()
        x, y = _normed(queries_1, queries_2, q_weight, eps, HEAD_DIM, ROUNDED_FIRST)
        if depths is not None:
            cos, sin = _turn_of(cursor_value, row, depth, frequencies, HEAD_DIM)
        x, y = turn_pairs(x, y, cos, sin)
        attend_split(
            x.to(queries_1.dtype), y.to(queries_2.dtype), tl.where(exists[:, None], keys_1, 0.0),
            tl.where(exists[:, None], keys_2, 0.0), tl.where(exists[:, None], values, 0.0), key, exists,
            Parts(highest_out, total_out, mixed_out), sinks, arrivals, out, cursor_value, num_rows, first_split, end,
            splits, scale, slot, others, whose, depth, GROUP, HEAD_DIM, WINDOW, CAUSAL, SPLIT, TILE, GROUP_ROWS, ADDED,
            False,
        )  # fmt: skip
