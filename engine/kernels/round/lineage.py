"""Trees for layers that recur: what each row of a round comes from, and where rows go that were accepted. A row goes on
from the state that its parent left, so it has the bits that it has in a chain of its ancestors."""

from __future__ import annotations

from ..decode.recurrent.delta import AT, DECAY, RATE, RAW, UNIT, K, Lineage, StateTable, V
from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import MAX_ROWS, cdiv, jit, tl
from .accept import AcceptedPath
from .state import constant
from .tree_rows import TreeRows

LANES = 512
"""Columns that a program moves."""
FIELDS, FIELD_K, FIELD_V, FIELD_DECAY, FIELD_RATE, FIELD_RAW = (
    constant(field) for field in (AT + 3, K, V, DECAY, RATE, RAW)
)
_UNIT, ROWS = constant(UNIT), constant(MAX_ROWS)


def trace(tree: TreeRows, rows: object, lineage: Lineage) -> None:
    """Fills ``lineage.ancestors`` from where the rows of a tree stand; ``rows`` int32 [1]: how many there are."""
    _trace[(1,)](tree.depths, tree.paths, rows, lineage.ancestors, num_warps=1)


def keep_path(table: StateTable, path: AcceptedPath) -> None:
    """Moves what the accepted rows would add to the layers' states to the places of a chain's rows, in all layers."""
    config, first = table.config, table.first
    keys = config.num_key_heads * config.key_dim
    wide = sum(cdiv(columns, LANES) for columns in (keys, config.values, config.channels))
    _keep_path[(wide + 2, len(table.states))](
        table.table, first[K], first[V], first[DECAY], first[RATE], first[RAW], path.rows, path.count,
        KEYS=keys, VALUES=config.values, CHANNELS=config.channels, HEADS=config.num_value_heads, LANES=LANES,
        num_warps=4,
    )  # fmt: skip


@early_kernel
def _trace(depths: tl.tensor, paths: tl.tensor, rows: tl.tensor, ancestors: tl.tensor) -> None:
    row = tl.arange(0, ROWS)
    child = tl.arange(0, ROWS)
    wait_for_inputs()
    let_next_start()
    depth = tl.load(depths + row)
    for hop in tl.static_range(1, 4):
        before = tl.load(paths + row * ROWS + depth - hop, mask=depth >= hop, other=0)
        tl.store(ancestors + row * 4 + hop - 1, tl.where(depth >= hop, before, depth - hop))
    depth = tl.load(depths + child)
    parent = tl.load(paths + child * ROWS + depth - 1, mask=(depth > 0) & (child < tl.load(rows)), other=-1)
    follows = (parent[None, :] == row[:, None]) & (child[None, :] != row[:, None] + 1)
    tl.store(ancestors + row * 4 + 3, tl.where(tl.max(follows.to(tl.int32), 1) > 0, row, -1))


@early_kernel
def _keep_path(
    table: tl.tensor, keys: tl.tensor, values: tl.tensor, decays: tl.tensor, rates: tl.tensor, raws: tl.tensor,
    path_rows: tl.tensor, path_count: tl.tensor,
    KEYS: tl.constexpr, VALUES: tl.constexpr, CHANNELS: tl.constexpr, HEADS: tl.constexpr, LANES: tl.constexpr,
) -> None:  # fmt: skip
    """The kernel of ``keep_path``: a program for each (some columns of one kind, layer)."""
    piece = tl.program_id(0)
    entry = table + tl.program_id(1) * FIELDS
    of_keys: tl.constexpr = (KEYS + LANES - 1) // LANES
    of_values: tl.constexpr = of_keys + (VALUES + LANES - 1) // LANES
    of_raw: tl.constexpr = of_values + (CHANNELS + LANES - 1) // LANES
    wait_for_inputs()
    let_next_start()
    count = tl.load(path_count)
    if piece < of_keys:
        move(keys + tl.load(entry + FIELD_K) * _UNIT, KEYS, piece * LANES, path_rows, count, LANES)
    elif piece < of_values:
        move(values + tl.load(entry + FIELD_V) * _UNIT, VALUES, (piece - of_keys) * LANES, path_rows, count, LANES)
    elif piece < of_raw:
        move(raws + tl.load(entry + FIELD_RAW) * _UNIT, CHANNELS, (piece - of_values) * LANES, path_rows, count, LANES)
    elif piece == of_raw:
        move(decays + tl.load(entry + FIELD_DECAY) * _UNIT, HEADS, 0, path_rows, count, LANES)
    else:
        move(rates + tl.load(entry + FIELD_RATE) * _UNIT, HEADS, 0, path_rows, count, LANES)


@jit
def move(
    base: tl.tensor, columns: tl.constexpr, start: tl.tensor, path_rows: tl.tensor, count: tl.tensor,
    LANES: tl.constexpr,
) -> None:  # fmt: skip
    """Moves row ``path_rows[r]`` of a matrix to place r, for each r below ``count``, in place. Rows only move towards
    the front, and each thread moves its own columns row by row: none is lost."""
    lane = start + tl.arange(0, LANES)
    for row in range(1, count):
        source = tl.load(path_rows + row)
        if source != row:
            moved = tl.load(base + source * columns + lane, mask=lane < columns)
            tl.store(base + row * columns + lane, moved, mask=lane < columns)
