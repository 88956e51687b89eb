"""A gated delta net's rows as kernels: ``reference/delta.py`` defines them. What a row does to a head's state is one
function here, whose roundings are spelt out, so a row has the same bits alone, among others, and when it is taken in
later. A program has a few of a head's value channels, which know nothing of one another, and all its key channels; rows
come one behind the other, and what they take is the wait for one another, not bytes.

A round's rows leave the state where it was. The next round begins with ``fold``, which takes in as many of them as the
cursor has passed since, in all layers at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ....kv_cache.delta_state import DeltaState, RecurrentState
from ....layer_config import DELTA_TAPS, DeltaConfig
from ...reference.delta import EPS, DeltaRows, DeltaWeights
from ...toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ...toolchain.jit import MAX_ROWS, cdiv, jit, tl
from ..tiling.tiles import RowTiles

VALUES, FOLDED = 4, 8
"""Value channels of a program that runs rows, and of one that folds them in, of which there are many more. The order of
sums is the same with any number: it goes over key channels, which are one warp's."""
UNIT = 4
"""Distances between tensors are counted in units of this many numbers, 16 bytes: what a thread moves at a time."""
WINDOW_CHANNELS = 512
"""How many channels' windows a program of ``slide`` moves on."""
STATE, K, V, DECAY, RATE, AT, WINDOW, RAW = range(8)
"""Columns of a table of states: where a layer's tensors lie, counted from the first layer's."""
PINNED = {"num_warps": 1, "enable_fp_fusion": False}
"""Products and sums that several kernels repeat are fused where they are written so, and nowhere else."""

_MAX_ROWS = tl.constexpr(MAX_ROWS) if tl else MAX_ROWS
_UNIT = tl.constexpr(UNIT) if tl else UNIT
_FIELDS = tl.constexpr(8) if tl else 8
_STATE, _K, _V, _DECAY, _RATE, _AT, _WINDOW, _RAW = (tl.constexpr(n) if tl else n for n in range(8))
_EPS = tl.constexpr(EPS) if tl else EPS


class Projected(NamedTuple):
    """What a gated delta net's two products make of rows."""

    rows: Tensor
    """[n, channels + values], may be strided: the inputs of the convolution, then the gates of the outputs."""
    rates: Tensor
    """[splits, n, 2 * value heads], to be added up: raw learning rates, then raw decays."""


class Lineage(NamedTuple):
    """Where the rows of a tree go on from, in layers that recur."""

    ancestors: Tensor
    """int32 [16, 4]: the row's parent, the row before that and the one before that, negative where these lie before the
    anchor: -1 is the last one there; then the row itself, or -1 where none but the next one may follow it."""
    forked: Tensor
    """fp32 [16, value heads, value channels, key channels]: the states behind those rows that others than the next one
    follow."""

    @classmethod
    def allocate(cls, config: DeltaConfig, device: torch.device) -> Lineage:
        shape = (MAX_ROWS, config.num_value_heads, config.value_dim, config.key_dim)
        ancestors = torch.zeros(MAX_ROWS, 4, dtype=torch.int32, device=device)
        return cls(ancestors, torch.zeros(shape, dtype=torch.float32, device=device))


class StateTable:
    """The states of all layers, as one launch finds them. Their addresses must stay."""

    def __init__(self, states: Sequence[DeltaState], config: DeltaConfig):
        self.states, self.config = states, config
        self.first = _tensors(states[0])
        places = [
            [_distance(tensor, first) for tensor, first in zip(_tensors(each), self.first, strict=True)]
            for each in states
        ]
        self.table = torch.tensor(places, dtype=torch.int64).to(states[0].at.device)
        """int64 [layers, 8], by the columns ``STATE`` to ``RAW``."""


def _tensors(state: DeltaState) -> tuple[Tensor, ...]:
    rows = state.rows
    return state.now.recurrent, rows.k, rows.v, rows.decay, rows.rate, state.at, state.now.window, rows.raw


def _distance(tensor: Tensor, first: Tensor) -> int:
    assert tensor.dtype == first.dtype and tensor.is_contiguous()
    distance, left = divmod(tensor.data_ptr() - first.data_ptr(), UNIT * tensor.itemsize)
    assert left == 0
    return distance


def fold(table: StateTable, cursor: Tensor, rows: Tensor) -> None:
    """Takes into each state the rows that it keeps before the cursor, unless no row is to be run: ``rows`` int32 [1].
    A state that stands elsewhere, as where someone measures, stays as it is. The states are told where they stand by
    ``prepare_rows``."""
    config, first = table.config, table.first
    layers = len(table.states)
    heads, values = config.num_value_heads, min(FOLDED, config.value_dim)
    _fold[(heads * (config.value_dim // values), layers)](
        table.table, first[STATE], first[K], first[V], first[DECAY], first[RATE], first[AT], cursor, rows,
        HEADS=heads, GROUP=heads // config.num_key_heads, KEY_DIM=config.key_dim, VALUE_DIM=config.value_dim,
        VALUES=values, **PINNED,
    )  # fmt: skip
    _slide[(cdiv(config.channels, WINDOW_CHANNELS), layers)](
        table.table, first[AT], first[WINDOW], first[RAW], cursor, rows,
        CHANNELS=config.channels, LANES=WINDOW_CHANNELS, num_warps=4,
    )  # fmt: skip


def prepare_rows(
    projected: Projected,
    window: Tensor,
    weights: DeltaWeights,
    config: DeltaConfig,
    q: Tensor,
    out: DeltaRows,
    at: Tensor | None,
    cursor: Tensor | None,
    rows: Tensor | None,
    max_rows: int = MAX_ROWS,
    tree: Lineage | None = None,
) -> None:
    """``reference.delta_rows`` of the first ``max_rows`` rows: fills ``q`` [n, key heads, key channels] and ``out``,
    which may have no room for ``raw`` rows.
    Rows follow ``window`` [3, channels], in a chain or as ``tree`` says. ``at`` int32 [1]: where the state stands,
    which is made the cursor unless there are no ``rows``."""
    keys, heads = config.num_key_heads, config.num_value_heads
    _prepare[(max_rows, 2 * keys + heads)](
        projected.rows, projected.rates, window, weights.conv, weights.a_log, weights.dt_bias, q,
        out.raw if len(out.raw) else None, out.k, out.v,
        out.decay, out.rate, at, cursor, rows, None if tree is None else tree.ancestors, projected.rows.stride(0),
        config.key_dim**-0.5,
        CHANNELS=config.channels, KEYS=keys, HEADS=heads, KEY_DIM=config.key_dim, VALUE_DIM=config.value_dim,
        SPLITS=len(projected.rates), APART=projected.rates.stride(0), **RowTiles(1).options,
    )  # fmt: skip


def scan_rows(
    state: Tensor,
    q: Tensor | None,
    rows: DeltaRows,
    out: Tensor | None,
    count: Tensor,
    config: DeltaConfig,
    *,
    writes: bool,
    tree: Lineage | None = None,
) -> None:
    """``reference.scan`` of the first ``count`` rows, int32 [1] on the device, in a chain or each behind its parent in
    a ``tree``: what queries read goes to ``out`` fp32 [n, value heads, value channels], and the state is changed if
    it ``writes``. The launch just before may not write the state."""
    heads, values = config.num_value_heads, min(VALUES, config.value_dim)
    _scan[(heads * (config.value_dim // values),)](
        state, q, rows.k, rows.v, rows.decay, rows.rate, out, count, None if tree is None else tree.ancestors,
        None if tree is None else tree.forked,
        HEADS=heads, GROUP=heads // config.num_key_heads, KEY_DIM=config.key_dim, VALUE_DIM=config.value_dim,
        VALUES=values, WRITES=writes, **PINNED,
    )  # fmt: skip


def take_by_kernels(config: DeltaConfig, moment: RecurrentState, rows: DeltaRows) -> None:
    """Takes rows into a moment as ``Moment.take`` does, but by the kernels of rounds, whose bits it then has."""
    count = torch.full((1,), len(rows.raw), dtype=torch.int32, device=moment.window.device)
    scan_rows(moment.recurrent, None, rows, None, count, config, writes=True)
    moment.slide(rows.raw)


@jit
def take_row(state: tl.tensor, k: tl.tensor, v: tl.tensor, decay: tl.tensor, rate: tl.tensor) -> tl.tensor:
    """``state`` [VALUES, KEY_DIM] after one more row: it decays, then learns the difference between ``v`` and its
    answer."""
    state = state * decay
    k = tl.broadcast_to(k[None, :], state.shape)
    learnt = (v - tl.sum(state * k, axis=1)) * rate
    return tl.fma(tl.broadcast_to(learnt[:, None], state.shape), k, state)


@jit
def take_rows(
    state: tl.tensor, q: tl.tensor, keys: tl.tensor, values: tl.tensor, decays: tl.tensor, rates: tl.tensor,
    out: tl.tensor, head: tl.tensor, value: tl.tensor, count: tl.tensor, ancestors: tl.tensor, origin: tl.tensor,
    forked: tl.tensor,
    HEADS: tl.constexpr, GROUP: tl.constexpr, KEY_DIM: tl.constexpr, VALUE_DIM: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """A program's state behind ``count`` rows; the answers to queries behind each row go to ``out``. The next row is
    loaded while one is taken in. Rows of a tree have ``ancestors``: one that doesn't follow the row before begins at
    ``origin``, the state before all rows, or at what its parent has left in ``forked``."""
    whole: tl.constexpr = HEADS * VALUE_DIM * KEY_DIM
    lane = tl.arange(0, KEY_DIM)
    k_at = (head // GROUP) * KEY_DIM + lane
    k_row: tl.constexpr = HEADS // GROUP * KEY_DIM
    v_at = head * VALUE_DIM + value
    some = count > 0
    k = tl.load(keys + k_at, mask=some & (lane >= 0), other=0.0)
    v = tl.load(values + v_at, mask=some & (value >= 0), other=0.0)
    decay = tl.load(decays + head, mask=some, other=0.0)
    rate = tl.load(rates + head, mask=some, other=0.0)
    if q is not None:
        asked = tl.load(q + k_at, mask=some & (lane >= 0), other=0.0)
    if ancestors is not None:
        parent = tl.load(ancestors)
    for row in range(0, count):
        more = row + 1 < count
        next_k = tl.load(keys + (row + 1) * k_row + k_at, mask=more & (lane >= 0), other=0.0)
        next_v = tl.load(values + (row + 1) * HEADS * VALUE_DIM + v_at, mask=more & (value >= 0), other=0.0)
        next_decay = tl.load(decays + (row + 1) * HEADS + head, mask=more, other=0.0)
        next_rate = tl.load(rates + (row + 1) * HEADS + head, mask=more, other=0.0)
        if q is not None:
            next_asked = tl.load(q + (row + 1) * k_row + k_at, mask=more & (lane >= 0), other=0.0)
        if ancestors is not None:
            next_parent = tl.load(ancestors + (row + 1) * 4, mask=more, other=0)
            if parent != row - 1:
                tl.debug_barrier()  # other threads may have left what this one loads
                state = tl.load(origin)
                if parent >= 0:
                    state = tl.load(forked + tl.load(ancestors + parent * 4 + 3) * whole)
            parent = next_parent
        state = take_row(state, k, v, decay, rate)
        if ancestors is not None:
            fork = tl.load(ancestors + row * 4 + 3)
            if fork >= 0:
                tl.store(forked + fork * whole, state)
        if q is not None:
            read = tl.sum(state * tl.broadcast_to(asked[None, :], state.shape), axis=1)
            tl.store(out + row * HEADS * VALUE_DIM + v_at, read)
            asked = next_asked
        k = next_k
        v = next_v
        decay = next_decay
        rate = next_rate
    return state


@early_kernel
def _scan(
    states: tl.tensor, q: tl.tensor, keys: tl.tensor, values: tl.tensor, decays: tl.tensor, rates: tl.tensor,
    out: tl.tensor, counts: tl.tensor, ancestors: tl.tensor, forked: tl.tensor,
    HEADS: tl.constexpr, GROUP: tl.constexpr, KEY_DIM: tl.constexpr, VALUE_DIM: tl.constexpr, VALUES: tl.constexpr,
    WRITES: tl.constexpr,
) -> None:  # fmt: skip
    """The kernel of ``scan_rows``: a program for each (head, some of its value channels)."""
    parts: tl.constexpr = VALUE_DIM // VALUES
    head = tl.program_id(0) // parts
    value = tl.program_id(0) % parts * VALUES + tl.arange(0, VALUES)
    cell = (head * VALUE_DIM + value[:, None]) * KEY_DIM + tl.arange(0, KEY_DIM)[None, :]
    at = states + cell
    left = None
    if ancestors is not None:
        left = forked + cell
    state = tl.load(at)  # written before the launch just before
    wait_for_inputs()
    count = tl.load(counts)
    let_next_start()
    state = take_rows(
        state, q, keys, values, decays, rates, out, head, value, count, ancestors, at, left,
        HEADS, GROUP, KEY_DIM, VALUE_DIM,
    )  # fmt: skip
    if WRITES:
        tl.store(at, state)


@early_kernel
def _fold(
    table: tl.tensor, states: tl.tensor, keys: tl.tensor, values: tl.tensor, decays: tl.tensor, rates: tl.tensor,
    ats: tl.tensor, cursor: tl.tensor, rows: tl.tensor,
    HEADS: tl.constexpr, GROUP: tl.constexpr, KEY_DIM: tl.constexpr, VALUE_DIM: tl.constexpr, VALUES: tl.constexpr,
) -> None:  # fmt: skip
    """The kernel of ``fold``: a program for each (head and some of its value channels, layer)."""
    parts: tl.constexpr = VALUE_DIM // VALUES
    head = tl.program_id(0) // parts
    value = tl.program_id(0) % parts * VALUES + tl.arange(0, VALUES)
    entry = table + tl.program_id(1) * _FIELDS
    at = states + tl.load(entry + _STATE) * _UNIT
    at += (head * VALUE_DIM + value[:, None]) * KEY_DIM + tl.arange(0, KEY_DIM)[None, :]
    keys += tl.load(entry + _K) * _UNIT
    values += tl.load(entry + _V) * _UNIT
    decays += tl.load(entry + _DECAY) * _UNIT
    rates += tl.load(entry + _RATE) * _UNIT
    ats += tl.load(entry + _AT) * _UNIT
    wait_for_inputs()
    let_next_start()
    count = rows_to_take(ats, cursor, rows)
    if count > 0:
        state = take_rows(
            tl.load(at), None, keys, values, decays, rates, None, head, value, count, None, None, None,
            HEADS, GROUP, KEY_DIM, VALUE_DIM,
        )  # fmt: skip
        tl.store(at, state)


@jit
def rows_to_take(at: tl.tensor, cursor: tl.tensor, rows: tl.tensor) -> tl.tensor:
    """How many kept rows the cursor has passed; 0 where nothing will run, or where they can't be its rows."""
    count = tl.load(cursor) - tl.load(at)
    known = (count >= 0) & (count <= _MAX_ROWS) & (tl.load(rows) > 0)
    return tl.where(known, count, 0)


@early_kernel
def _slide(
    table: tl.tensor, ats: tl.tensor, windows: tl.tensor, raws: tl.tensor, cursor: tl.tensor, rows: tl.tensor,
    CHANNELS: tl.constexpr, LANES: tl.constexpr,
) -> None:  # fmt: skip
    """A program for each (some channels, layer): the window's three rows become the last three before the cursor."""
    entry = table + tl.program_id(1) * _FIELDS
    lane = tl.program_id(0) * LANES + tl.arange(0, LANES)
    there = lane < CHANNELS
    window = windows + tl.load(entry + _WINDOW) * _UNIT + lane
    raw = raws + tl.load(entry + _RAW) * _UNIT + lane
    ats += tl.load(entry + _AT) * _UNIT
    wait_for_inputs()
    let_next_start()
    count = rows_to_take(ats, cursor, rows)
    if count > 0:
        first = row_before(window, raw, count - 3, there, CHANNELS)
        second = row_before(window, raw, count - 2, there, CHANNELS)
        third = row_before(window, raw, count - 1, there, CHANNELS)
        tl.store(window, first, mask=there)
        tl.store(window + CHANNELS, second, mask=there)
        tl.store(window + 2 * CHANNELS, third, mask=there)


@jit
def row_before(
    window: tl.tensor, raw: tl.tensor, row: tl.tensor, there: tl.tensor, CHANNELS: tl.constexpr
) -> tl.tensor:
    """The convolution's inputs in a row; those in the window where that row lies before the first."""
    return tl.load(tl.where(row >= 0, raw + row * CHANNELS, window + (3 + row) * CHANNELS), mask=there, other=0.0)


@jit
def convolved(
    projected: tl.tensor, window: tl.tensor, weight: tl.tensor, row: tl.tensor, channel: tl.tensor,
    row_stride: tl.tensor, ancestors: tl.tensor, CHANNELS: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """A row's channels behind convolution and activation, rounded to the model's dtype, as fp32."""
    total = tl.zeros(channel.shape, dtype=tl.float32)
    for tap in tl.static_range(0, 4):
        before = row + tap - 3
        if ancestors is not None and tap < 3:
            before = tl.load(ancestors + row * 4 + 2 - tap)
        source = tl.where(before >= 0, projected + before * row_stride, window + (3 + before) * CHANNELS)
        total += tl.load(source + channel).to(tl.float32) * tl.load(weight + channel * 4 + tap).to(tl.float32)
    return (total / (1 + tl.exp(-total))).to(projected.dtype.element_ty).to(tl.float32)


@jit
def sum_of_splits(first: tl.tensor, SPLITS: tl.constexpr, APART: tl.constexpr) -> tl.tensor:
    """The sum of splits that lie APART, fp32, in order."""
    total = tl.load(first).to(tl.float32)
    for split in tl.static_range(1, SPLITS):
        total += tl.load(first + split * APART).to(tl.float32)
    return total


@early_kernel
def _prepare(
    projected: tl.tensor, rates: tl.tensor, window: tl.tensor, weight: tl.tensor, a_log: tl.tensor, dt_bias: tl.tensor,
    q_out: tl.tensor, raw_out: tl.tensor, k_out: tl.tensor, v_out: tl.tensor, decay_out: tl.tensor, rate_out: tl.tensor,
    at: tl.tensor, cursor: tl.tensor, rows: tl.tensor, ancestors: tl.tensor, row_stride: tl.tensor, scale: tl.tensor,
    CHANNELS: tl.constexpr, KEYS: tl.constexpr, HEADS: tl.constexpr, KEY_DIM: tl.constexpr, VALUE_DIM: tl.constexpr,
    SPLITS: tl.constexpr, APART: tl.constexpr,
) -> None:  # fmt: skip
    """A program for each (row, head): queries first, then keys, then values."""
    row = tl.program_id(0)
    head = tl.program_id(1)
    wait_for_inputs()
    let_next_start()
    live = True
    if rows is not None:
        live = tl.load(rows) > row
    if live:
        if head < 2 * KEYS:
            channel = head * KEY_DIM + tl.arange(0, KEY_DIM)
            x = convolved(projected, window, weight, row, channel, row_stride, ancestors, CHANNELS)
            x = x * tl.rsqrt(tl.sum(x * x, axis=0) + _EPS)
            if head < KEYS:
                tl.store(q_out + row * KEYS * KEY_DIM + channel, x * scale)
            else:
                tl.store(k_out + row * KEYS * KEY_DIM + channel - KEYS * KEY_DIM, x)
            if raw_out is not None:
                tl.store(raw_out + row * CHANNELS + channel, tl.load(projected + row * row_stride + channel))
        else:
            number = head - 2 * KEYS
            value = number * VALUE_DIM + tl.arange(0, VALUE_DIM)
            channel = 2 * KEYS * KEY_DIM + value
            x = convolved(projected, window, weight, row, channel, row_stride, ancestors, CHANNELS)
            tl.store(v_out + row * HEADS * VALUE_DIM + value, x)
            if raw_out is not None:
                tl.store(raw_out + row * CHANNELS + channel, tl.load(projected + row * row_stride + channel))
            b = sum_of_splits(rates + row * 2 * HEADS + number, SPLITS, APART)
            a = sum_of_splits(rates + row * 2 * HEADS + HEADS + number, SPLITS, APART)
            a += tl.load(dt_bias + number).to(tl.float32)
            soft = tl.where(a > 20.0, a, tl.log(1 + tl.exp(tl.minimum(a, 20.0))))
            tl.store(decay_out + row * HEADS + number, tl.exp(-tl.exp(tl.load(a_log + number).to(tl.float32)) * soft))
            tl.store(rate_out + row * HEADS + number, 1 / (1 + tl.exp(-b)))
        if at is not None:
            tl.store(at, tl.load(cursor), mask=row + head == 0)


assert DELTA_TAPS == 4, "the kernels above are written for windows of three rows"
