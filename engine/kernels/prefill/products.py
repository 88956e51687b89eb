"""Products of many rows with packed weights, dense and of rows sorted by expert. A tile of the weight is unpacked in
registers, where tensor cores take one of their two factors from; so the product computed is weight times rows^T, and
what is unpacked never passes through shared memory. Sums go over the depth in one order, whatever the tile: a row has
the same bits beside any other rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional as F

from ...layer_config import Activation
from ..shared.activation import activate, activate_clamped
from ..toolchain.card import Card, card_of
from ..toolchain.jit import cdiv, dot, jit, power_of_two, tl
from ..weights.fp8 import fp8_words
from ..weights.int8 import int8_pairs
from ..weights.matrix import FP8, INT8, group_of, restored, two_numbers
from ..weights.plain import PlainWeight
from ..weights.weight import Weight


@dataclass(frozen=True, slots=True)
class ManyTiles:
    """How a launch cuts the product of a prompt's rows with a weight: a program computes tiles of ``rows`` x
    ``columns``."""

    columns: int
    """Rows of the weight in a tile, which are columns of the result."""
    rows: int
    few: int
    """Where the rest of a prompt's or an expert's rows is no more than this, it gets a tile of this many rows."""
    depth: int
    warps: int
    stages: int
    parts: int = 1
    """Steps of ``depth`` in one turn of the loop. While one is multiplied the next is unpacked, except across the end
    of a turn (``toolchain/finished_products.py``)."""
    fewest: int = 0
    """A rest of no more rows than this gets a still smaller tile, of this many; 0 for no such tile."""

    @property
    def shared_memory(self) -> int:
        """Bytes of shared memory of a program, for weights in 8 bits."""
        return self.parts * self.depth * (2 * self.rows * self.stages + self.columns * (self.stages - 1))

    def rounds(self, columns: int, rows: int, card: Card) -> int:
        """How many tiles each multiprocessor computes, one after the other."""
        return cdiv(cdiv(columns, self.columns) * cdiv(rows, self.rows), card.multiprocessors)


LONG = ManyTiles(columns=128, rows=256, few=64, depth=64, warps=8, stages=4)
SHORT = ManyTiles(columns=128, rows=128, few=64, depth=64, warps=8, stages=4)
OF_EXPERTS = replace(SHORT, warps=4, fewest=32)
"""Two of its programs share a Hopper multiprocessor: one unpacks while the other multiplies."""
LONG_BY_SHORT = 0.55
"""The time of a tile of SHORT, as a share of that of one of LONG."""
MOST_ROWS = 4096
"""Rows of a prompt's longest piece (``decoder.py``). There is machine code for that and for a piece of a few rows."""
ROWS_OF_LONG, DEPTH_OF_LONG = 400, 2048
"""Rows of an expert on average, and the depth, from which on LONG multiplies them faster."""


@lru_cache(maxsize=256)  # a prompt's pieces ask for the same few in every layer
def many_tiles(columns: int, rows: int, depth: int, card: Card, experts: int = 0) -> ManyTiles:
    """The tiles for a weight [columns, depth] and this many rows, or for experts that have them together. All give the
    same bits."""
    tiles = SHORT
    if card.multiplies_from_shared_memory and experts:
        tiles = LONG if rows >= ROWS_OF_LONG * experts and depth >= DEPTH_OF_LONG else OF_EXPERTS
    elif card.multiplies_from_shared_memory and all(_is_long(columns, each, card) for each in (rows, MOST_ROWS)):
        tiles = LONG
    while card.programs_of(tiles.shared_memory) == 0:
        tiles = replace(tiles, stages=tiles.stages - 1)
    return tiles


def _is_long(columns: int, rows: int, card: Card) -> bool:
    return LONG.rounds(columns, rows, card) <= LONG_BY_SHORT * SHORT.rounds(columns, rows, card)


def multiply_many(
    x: Tensor,
    weight: Weight,
    ends: Tensor | None = None,
    *,
    gate: Activation | None = None,
    bias: Tensor | None = None,
    tiles: ManyTiles | None = None,
) -> Tensor:
    """Products [n, rows] of x [n, depth] with a weight [rows, depth], in x's dtype; or, for ``ends`` int32 [experts],
    with a weight [experts, rows, depth]: x is sorted by expert, and each expert's rows end there. ``bias``,
    [rows] or [experts, rows], is added. ``gate``: act(gate) * up, [n, rows / 2], is rounded once; the weight's first
    half are gates, or, ``clamped_silu``, gates and ups take turns."""
    n, depth = x.shape
    *outer, rows, across = weight.shape
    columns = rows if gate is None else rows // 2
    experts = 0 if ends is None else len(ends)
    tiles = tiles or many_tiles(rows, n, depth, card_of(x.device), experts)
    assert x.is_contiguous() and across == depth and weight.is_contiguous
    assert bias is None or (bias.is_contiguous() and bias.shape == (*outer, rows))
    out = torch.empty(n, columns, dtype=x.dtype, device=x.device)
    row_tiles = cdiv(n, tiles.rows)
    if experts:  # at most: each expert's last tile may hold a single row
        row_tiles = n // tiles.rows + min(n, experts)
    _multiply_many[(row_tiles * cdiv(rows, tiles.columns),)](
        x, weight.values, weight.scales, bias, ends, out, n, columns, depth, N=columns if experts else None,
        K=depth if experts else None, EVEN=depth % (tiles.parts * tiles.depth) == 0, FORMAT=weight.format,
        GATE=gate is not None, SILU=gate == "silu", CLAMPED=gate == "clamped_silu", EXPERTS=experts,
        BLOCK_E=power_of_two(experts), BLOCK_N=tiles.columns, BLOCK_M=tiles.rows, FEW=tiles.few, FEWEST=tiles.fewest,
        BLOCK_K=tiles.depth, PARTS=tiles.parts, num_warps=tiles.warps, num_stages=tiles.stages,
    )  # fmt: skip
    return out


def product(x: Tensor, weight: Weight, ends: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
    """``multiply_many`` with a weight of any kind, wherever x is: plain ones by PyTorch."""
    if weight.unpacks_inside(x):
        return multiply_many(x, weight, ends, bias=bias)
    if ends is None and isinstance(weight, PlainWeight):
        return F.linear(x, weight.values, bias)  # rounds once
    out = weight.linear(x) if ends is None else weight.grouped(x, ends)
    if bias is None:
        return out
    return out + (bias if ends is None else bias[_experts_of(len(x), ends)])


def _experts_of(rows: int, ends: Tensor) -> Tensor:
    """int64 [rows]: the expert of each row, which are sorted by expert."""
    row = torch.arange(rows, dtype=ends.dtype, device=ends.device)
    return torch.searchsorted(ends, row, right=True)


@jit
def _load_tile(
    weight: tl.tensor,
    scales: tl.tensor,
    column: tl.tensor,
    at: tl.tensor,
    x: tl.tensor,
    K: tl.tensor,
    FORMAT: tl.constexpr,
    EVEN: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
) -> tl.tensor:
    """Columns at .. at + BLOCK_K - 1 of the weight's rows ``column``, [BLOCK_N, BLOCK_K] in the dtype of rows x.
    EVEN: none lies past the end."""
    if FORMAT == FP8:
        tile = _load_fp8(weight, column, at, x, K, EVEN, BLOCK_N, BLOCK_K)
    else:
        if FORMAT == INT8:
            first, second = int8_pairs(_load_pairs(weight, column, at, K, EVEN, BLOCK_K), x)
        else:
            first, second = _load_4_bits(weight, scales, column, at, x, K, FORMAT, EVEN, BLOCK_N, BLOCK_K)
        tile = tl.join(first, second).reshape(BLOCK_N, BLOCK_K)
    return tile


@jit
def _load_pairs(
    weight: tl.tensor, column: tl.tensor, at: tl.tensor, K: tl.tensor, EVEN: tl.constexpr, BLOCK_K: tl.constexpr
) -> tl.tensor:
    """Pairs of neighbours in 8 bits, uint16 [rows, BLOCK_K / 2], of a weight that lies row by row."""
    pair = at // 2 + tl.arange(0, BLOCK_K // 2)
    pointers = weight.to(tl.pointer_type(tl.uint16)) + column[:, None] * (K // 2) + pair[None, :]
    return tl.load(pointers) if EVEN else tl.load(pointers, mask=(pair < K // 2)[None, :], other=0)


@jit
def _load_words(
    weight: tl.tensor,
    column: tl.tensor,
    at: tl.tensor,
    K: tl.tensor,
    WIDTH: tl.constexpr,
    EVEN: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
) -> tl.tensor:
    """uint32 [BLOCK_N, WIDTH * BLOCK_K / 32] of a weight in panels, whose rows have WIDTH words in a block: 32 bytes of
    FP8, which lie side by side in shared memory, too. Copied to two places they would be read twice, each time whole,
    and what a prompt waits for is what comes from L2. Four words of eight rows are read at once: with 32 bytes a row
    Triton exchanges the halves of every other four rows, so that they fall on different banks."""
    panels: tl.constexpr = BLOCK_N // 16
    blocks: tl.constexpr = BLOCK_K // 32
    row = tl.broadcast_to(column.reshape(panels, 1, 16), [panels, blocks, 16]).reshape(panels * blocks * 16)
    block = at // 32 + tl.arange(0, panels * blocks * 16) // 16 % blocks
    offset = row // 16 * (WIDTH * K // 2) + row % 16 * WIDTH + block * (16 * WIDTH)
    pointers = weight.to(tl.pointer_type(tl.uint32)) + offset[:, None] + tl.arange(0, WIDTH)[None, :]
    words = tl.load(pointers) if EVEN else tl.load(pointers, mask=(block < K // 32)[:, None], other=0)
    return words.reshape(panels, blocks, 16, WIDTH).permute(0, 2, 1, 3).reshape(BLOCK_N, blocks * WIDTH)


@jit
def _load_fp8(
    weight: tl.tensor,
    column: tl.tensor,
    at: tl.tensor,
    x: tl.tensor,
    K: tl.tensor,
    EVEN: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
) -> tl.tensor:
    """Four numbers of FP8 from each word, which holds what one thread multiplies at a time."""
    a, b, c, d = fp8_words(_load_words(weight, column, at, K, 8, EVEN, BLOCK_N, BLOCK_K), x)
    four = tl.join(tl.join(a, b), tl.join(c, d)).reshape(BLOCK_N, BLOCK_K // 16, 4, 2, 2)
    return four.permute(0, 1, 4, 2, 3).reshape(BLOCK_N, BLOCK_K)


@jit
def _load_4_bits(
    weight: tl.tensor,
    scales: tl.tensor,
    column: tl.tensor,
    at: tl.tensor,
    x: tl.tensor,
    K: tl.tensor,
    FORMAT: tl.constexpr,
    EVEN: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:
    """The first and the second of all pairs of neighbours, [BLOCK_N, BLOCK_K / 2]."""
    blocks: tl.constexpr = BLOCK_K // 32
    group_size: tl.constexpr = group_of(FORMAT)
    words = _load_words(weight, column, at, K, 4, EVEN, BLOCK_N, BLOCK_K)
    # Of a word's eight numbers two neighbours stand 4 bits higher than the two before; 8 bits, those 16 further on.
    spread = tl.broadcast_to(words.reshape(BLOCK_N, blocks, 4)[:, :, None, :, None], [BLOCK_N, blocks, 2, 4, 2])
    pairs = spread.reshape(BLOCK_N, BLOCK_K // 2)
    pair = tl.arange(0, BLOCK_K // 2)[None, :]
    turn = pair // 8 % 2 * 8 + pair % 2 * 4
    block = at // 32 + tl.arange(0, blocks)
    group = (block // (group_size // 32))[None, :]
    offset = (column // 16 * (16 * (K // group_size)) + column % 8 * 2 + column // 8 % 2)[:, None] + group * 16
    scale = _load_scales(scales, offset, block < K // 32, EVEN)
    return two_numbers(pairs, pair, turn, scale, x, FORMAT)  # type: ignore[no-any-return]


@jit
def _load_scales(scales: tl.tensor, at: tl.tensor, exists: tl.tensor, EVEN: tl.constexpr) -> tl.tensor:
    """Scales [rows, blocks] at ``at``. Those of 16 bits are read in pairs, and bytes by four: what is smaller than four
    bytes can't be copied into shared memory while others are multiplied."""
    dtype: tl.constexpr = scales.dtype.element_ty
    wide: tl.constexpr = dtype == tl.float32
    per_word: tl.constexpr = 4 if dtype == tl.uint8 else 2
    words = scales + at if wide else scales.to(tl.pointer_type(tl.uint32)) + at // per_word
    word = tl.load(words) if EVEN else tl.load(words, mask=exists[None, :], other=0)
    if wide:
        return word
    elif dtype == tl.uint8:
        return (word >> (at % 4 * 8).to(tl.uint32)) & 0xFF
    else:
        return (word >> (at % 2 * 16).to(tl.uint32)).to(tl.uint16).to(dtype, bitcast=True)


@jit
def _multiply_tile(
    x: tl.tensor,
    weight: tl.tensor,
    scales: tl.tensor,
    bias: tl.tensor,
    out: tl.tensor,
    first: tl.tensor,
    end: tl.tensor,
    tile: tl.tensor,
    N: tl.tensor,
    K: tl.tensor,
    EVEN: tl.constexpr,
    FORMAT: tl.constexpr,
    GATE: tl.constexpr,
    SILU: tl.constexpr,
    CLAMPED: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PARTS: tl.constexpr,
) -> None:
    """One tile of the result: rows ``first`` .. ``end`` - 1, BLOCK_M at most."""
    lane = tl.arange(0, BLOCK_N)
    if GATE:
        # Eight gates and what they gate take turns: sums that are eight rows apart lie in one thread.
        column = tile * (BLOCK_N // 2) + lane // 16 * 8 + lane % 8
        column = tl.minimum(column, N - 1)
        column = column * 2 + lane // 8 % 2 if CLAMPED else column + lane // 8 % 2 * N
    else:
        column = tl.minimum(tile * BLOCK_N + lane, N - 1)
    row = tl.arange(0, BLOCK_M)
    source = x + first.to(tl.int64) * K + tl.minimum(row, end - first - 1)[:, None] * K
    total = tl.zeros([BLOCK_N, BLOCK_M], dtype=tl.float32)
    for turn in tl.range(0, K, PARTS * BLOCK_K):
        for step in tl.static_range(PARTS):
            at = turn + step * BLOCK_K
            depth = at + tl.arange(0, BLOCK_K)
            factor = _load_tile(weight, scales, column, at, x, K, FORMAT, EVEN, BLOCK_N, BLOCK_K)
            pointers = source + depth[None, :]
            rows = tl.load(pointers) if EVEN else tl.load(pointers, mask=(depth < K)[None, :], other=0.0)
            total = dot(factor, rows.T, total)
    if FORMAT <= FP8:
        total *= tl.load(scales + column)[:, None]
    else:
        total = restored(total, FORMAT)
    if bias is not None:
        total += tl.load(bias + column).to(tl.float32)[:, None]
    out += first.to(tl.int64) * N
    live = row[None, :] < end - first
    if GATE:
        both = total.reshape(BLOCK_N // 16, 2, 8, BLOCK_M).permute(0, 2, 3, 1)
        gate, up = tl.split(both)
        act = activate_clamped(gate, up) if CLAMPED else activate(gate, SILU) * up
        act = act.reshape(BLOCK_N // 2, BLOCK_M)
        out_column = tile * (BLOCK_N // 2) + tl.arange(0, BLOCK_N // 2)[:, None]
        tl.store(out + row[None, :] * N + out_column, act.to(out.dtype.element_ty), mask=live & (out_column < N))
    else:
        out_column = tile * BLOCK_N + lane[:, None]
        tl.store(out + row[None, :] * N + out_column, total.to(out.dtype.element_ty), mask=live & (out_column < N))


@jit
def _multiply_many(
    x: tl.tensor, weight: tl.tensor, scales: tl.tensor, bias: tl.tensor, ends: tl.tensor, out: tl.tensor,
    max_rows: tl.tensor, columns: tl.tensor, depth: tl.tensor,
    N: tl.constexpr, K: tl.constexpr, EVEN: tl.constexpr, FORMAT: tl.constexpr, GATE: tl.constexpr, SILU: tl.constexpr,
    CLAMPED: tl.constexpr, EXPERTS: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_M: tl.constexpr,
    FEW: tl.constexpr, FEWEST: tl.constexpr, BLOCK_K: tl.constexpr, PARTS: tl.constexpr,
) -> None:  # fmt: skip
    """A program for each (tile of rows, tile of columns). ``max_rows`` is the number of rows. N columns and depth K are
    constants for experts alone, which are slower without: other weights share machine code."""
    width = columns if N is None else N
    deep = depth if K is None else K
    if EXPERTS > 0:
        rows: tl.constexpr = 2 * N if GATE else N
        tiles: tl.constexpr = (rows + BLOCK_N - 1) // BLOCK_N
        # Neighbours share an expert's rows; its weight is read once.
        tile = tl.program_id(0) % tiles
        number = tl.program_id(0) // tiles
        expert = tl.arange(0, BLOCK_E)
        until = tl.load(ends + expert, mask=expert < EXPERTS, other=0)
        since = tl.load(ends + expert - 1, mask=(expert > 0) & (expert < EXPERTS), other=0)
        count = (until - since + BLOCK_M - 1) // BLOCK_M
        behind = tl.cumsum(count, axis=0)
        mine = (behind - count <= number) & (number < behind)
        first = tl.sum(tl.where(mine, since + (number - behind + count) * BLOCK_M, 0))
        end = tl.sum(tl.where(mine, tl.minimum(until, since + (number - behind + count + 1) * BLOCK_M), 0))
        chosen = tl.sum(tl.where(mine, expert, 0)).to(tl.int64)
        weight += chosen * rows * (K if FORMAT <= FP8 else K // 2)
        scales += chosen * rows * (1 if FORMAT <= FP8 else K // group_of(FORMAT))
        if bias is not None:
            bias += chosen * rows
    else:
        # Neighbours share a tile of the weight; the rows stay near.
        row_tiles = (max_rows + BLOCK_M - 1) // BLOCK_M
        tile = tl.program_id(0) // row_tiles
        first = tl.program_id(0) % row_tiles * BLOCK_M
        end = tl.minimum(max_rows, first + BLOCK_M)
    if end - first > FEW:
        _multiply_tile(
            x, weight, scales, bias, out, first, end, tile, width, deep, EVEN, FORMAT, GATE, SILU, CLAMPED, BLOCK_N,
            BLOCK_M, BLOCK_K, PARTS,
        )  # fmt: skip
    elif end - first > FEWEST:
        _multiply_tile(
            x, weight, scales, bias, out, first, end, tile, width, deep, EVEN, FORMAT, GATE, SILU, CLAMPED, BLOCK_N,
            FEW, BLOCK_K, PARTS,
        )  # fmt: skip
    elif FEWEST > 0:  # noqa: SIM102 (the compiler looks into both sides of an "and")
        if end > first:
            _multiply_tile(
                x, weight, scales, bias, out, first, end, tile, width, deep, EVEN, FORMAT, GATE, SILU, CLAMPED, BLOCK_N,
                FEWEST, BLOCK_K, PARTS,
            )  # fmt: skip
