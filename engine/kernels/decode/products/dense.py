"""Products of at most 16 rows with a weight, which is read once at memory's speed. All 16 rows of a tile are computed,
so sums don't depend on live rows and no program waits for a counter; rows from ``max_rows`` (fixed when recorded) are
neither read nor written. Inputs are normed by the kernels of ``norm.py``, so they go straight into shared memory, or,
with a packed weight, into registers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from ....layer_config import Activation
from ...shared.activation import activate
from ...toolchain.early_launch import early_kernel, let_next_start, wait_behind_copies, wait_for_inputs
from ...toolchain.jit import MAX_ROWS, cdiv, dot, jit, tl
from ...weights.matrix import FP8, Matrix, load_factor, scaled
from ...weights.plain import PLAIN
from ...weights.weight import Weight
from ..tiling.tiles import Tiles
from .packed import first_words, gate_and_up, height_of, is_packed, multiply_once, rows_of_pass
from .prefetch import prefetch
from .tile_shape import TileShape, depth_of_split, last_asked, length_of, place_of

COPIED = tl.constexpr(-1) if tl else -1
"""In the place of EARLY: the first tiles are on their way into shared memory before the wait."""


def reference_project(x: Tensor, weight: Weight) -> Tensor:
    """fp32 products [n, columns] of rows x [n, depth] with a weight [columns, depth]."""
    return F.linear(x.float(), weight.restored_for(x.dtype))


def reference_gate_up(x: Tensor, weight: Weight, activation: Activation) -> Tensor:
    """act(gate) * up, [n, inter] in x's dtype, for a weight [2 * inter, depth], gate first; fp32 until the end."""
    gate, up = reference_project(x, weight).chunk(2, dim=-1)
    gate = F.silu(gate) if activation == "silu" else F.gelu(gate, approximate="tanh")
    return (gate * up).to(x.dtype)


def partial_sums(tiles: Tiles, columns: int, device: torch.device) -> Tensor:
    """Memory for the sums of ``project``'s splits: fp32 [splits, 16, columns]."""
    return torch.zeros(tiles.splits, MAX_ROWS, columns, dtype=torch.float32, device=device)


def project(
    x: Tensor, weight: Weight, out: Tensor, tiles: Tiles, max_rows: int = MAX_ROWS, bias: Tensor | None = None
) -> None:
    """Products of rows x [16, depth] with a weight [columns, depth]. ``out``: [16, columns] of any float dtype if
    ``tiles.splits`` is 1, else ``partial_sums``, to be added over the first dimension in order. ``bias`` [columns], any
    float dtype: added in fp32, to the first split's sums."""
    columns, depth = weight.shape
    assert x.shape[1] == depth and out.numel() == tiles.splits * MAX_ROWS * columns
    assert x.is_contiguous() and weight.is_contiguous and out.is_contiguous()
    if tiles.copied is not None and max_rows == 1 and weight.format == PLAIN:
        tiles = replace(tiles, stages=tiles.copied, early=int(COPIED))
    # Packed weights of one depth share machine code, where it depends on the number of columns in nothing else.
    alike = is_packed(weight) and columns % tiles.columns == 0 and not tiles.turned
    _project[(cdiv(columns, tiles.columns), tiles.splits)](
        x, weight.values, weight.scales, bias, out, max_rows, columns if alike else None,
        N=tiles.columns if alike else columns, K=depth, FORMAT=weight.format, SPLITS=tiles.splits,
        BLOCK_N=tiles.columns, BLOCK_K=tiles.depth, PARTS=tiles.warps, AHEAD=tiles.ahead, EARLY=tiles.early or 0,
        TURNED=tiles.turned, HEIGHT=height_of(weight, max_rows), **tiles.options,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Product:
    """One of two products that a launch makes of the same rows: see ``project_two``."""

    weight: Weight
    out: Tensor
    tiles: Tiles


def project_two(x: Tensor, few: Product, many: Product, max_rows: int = MAX_ROWS) -> None:
    """``project`` of rows x [16, depth] with two weights, in one launch, whose warps, stages and registers are those of
    ``many``. That of few columns would leave a GPU idle by itself; its programs come first."""
    depth = x.shape[1]
    for each in (few, many):
        columns, splits = each.weight.shape[0], each.tiles.splits
        assert each.weight.shape[1] == depth and each.out.numel() == splits * MAX_ROWS * columns
        assert each.weight.is_contiguous and each.out.is_contiguous()
    assert x.is_contiguous()
    programs = [cdiv(each.weight.shape[0], each.tiles.columns) * each.tiles.splits for each in (few, many)]
    _project_two[(sum(programs),)](
        x, few.weight.values, few.weight.scales, few.out, many.weight.values, many.weight.scales, many.out, max_rows,
        K=depth, FEW_N=few.weight.shape[0], FEW_FORMAT=few.weight.format, FEW_SPLITS=few.tiles.splits,
        FEW_BLOCK_N=few.tiles.columns, FEW_BLOCK_K=few.tiles.depth, FEW_PARTS=few.tiles.warps,
        FEW_TURNED=few.tiles.turned, FEW_HEIGHT=height_of(few.weight, max_rows), N=many.weight.shape[0],
        FORMAT=many.weight.format, SPLITS=many.tiles.splits, BLOCK_N=many.tiles.columns, BLOCK_K=many.tiles.depth,
        PARTS=many.tiles.warps, TURNED=many.tiles.turned, HEIGHT=height_of(many.weight, max_rows),
        AHEAD=many.tiles.ahead, EARLY=many.tiles.early or 0, **many.tiles.options,
    )  # fmt: skip


def gate_up(
    x: Tensor, weight: Weight, out: Tensor, activation: Activation, tiles: Tiles, max_rows: int = MAX_ROWS
) -> None:
    """``out`` [16, inter] = act(gate) * up of rows x [16, depth]; ``weight`` [2 * inter, depth], the gate first."""
    inter, depth = weight.shape[0] // 2, weight.shape[1]
    assert x.shape[1] == depth and out.shape[1] == inter
    assert x.is_contiguous() and weight.is_contiguous and out.is_contiguous()
    _gate_up[(cdiv(inter, tiles.columns),)](
        x, weight.values, weight.scales, out, max_rows,
        INTER=inter, K=depth, FORMAT=weight.format, SILU=activation == "silu", BLOCK_N=tiles.columns,
        BLOCK_K=tiles.depth, PARTS=tiles.warps, AHEAD=tiles.ahead, EARLY=tiles.early or 0,
        TURNED=tiles.turned, HEIGHT=height_of(weight, max_rows), **tiles.options,
    )  # fmt: skip


@jit
def load_rows(x: tl.tensor, max_rows: tl.tensor, at: tl.tensor, K: tl.constexpr, ALIGNED: tl.constexpr) -> tl.tensor:
    """Columns ``at`` of rows x [16, K]; rows from ``max_rows`` on are zero."""
    row = tl.arange(0, 16)[:, None]
    live = row < max_rows
    return tl.load(x + row * K + at[None, :], mask=live if ALIGNED else live & (at[None, :] < K), other=0.0)


@jit
def multiply_rows(
    x: tl.tensor,
    weight: Matrix,
    columns: tl.tensor,
    start: tl.tensor,
    max_rows: tl.tensor,
    DEPTH: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    AHEAD: tl.constexpr,
    SPLITS: tl.constexpr = 1,
    column: tl.tensor = 0,
    TURNED: tl.constexpr = False,
) -> tl.tensor:
    """fp32 [16, BLOCK_N]: rows x [16, depth] times the weight's rows ``columns``, over depth start .. start + DEPTH -
    1. ``column`` and TURNED say at which step the loop begins (``place_of``). Lets the next kernel start when it loads
    its last tiles, AHEAD steps before they are multiplied."""
    # Some splits lie past the end of the depth.
    even: tl.constexpr = DEPTH % BLOCK_K == 0 and weight.K == DEPTH * SPLITS
    aligned: tl.constexpr = even and weight.N % BLOCK_N == 0
    total = tl.zeros([16, BLOCK_N], dtype=tl.float32)
    for step in tl.range(0, DEPTH, BLOCK_K):
        if step == last_asked(DEPTH, BLOCK_K, AHEAD):
            let_next_start()
        at = start + place_of(step, column, 0, weight.N, DEPTH, BLOCK_K, TURNED) + tl.arange(0, BLOCK_K)
        tile = load_factor(weight, 0, columns, at, x, aligned)
        total = dot(load_rows(x, max_rows, at, weight.K, even), tile.T, total)
    return total


@jit
def begin_project(
    weight: Matrix, tile: tl.tensor, split: tl.tensor, there: tl.tensor, SPLITS: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, PARTS: tl.constexpr, AHEAD: tl.constexpr, TURNED: tl.constexpr, EARLY: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """Loads the weight's first tiles before the wait, in programs where such a part is ``there``: packed ones into
    registers, those of EARLY steps of other weights into L2."""
    depth: tl.constexpr = depth_of_split(weight.K, BLOCK_K, SPLITS)
    if weight.FORMAT >= FP8:
        return first_words(
            0, tile * BLOCK_N, split * depth, there, weight,
            TileShape(depth, BLOCK_N, BLOCK_K, PARTS, AHEAD, TURNED, SPLITS, 0),
        )  # fmt: skip
    else:
        if EARLY > 0:
            start = split * depth + place_of(0, tile * BLOCK_N, 0, weight.N, depth, BLOCK_K, TURNED)
            prefetch(weight, 0, tile * BLOCK_N, start, there, BLOCK_N, BLOCK_K, EARLY)
        return 0


@jit
def project_tile(
    x: tl.tensor,
    weight: Matrix,
    added: tl.tensor,
    out: tl.tensor,
    tile: tl.tensor,
    split: tl.tensor,
    max_rows: tl.tensor,
    words: tl.tensor,
    width: tl.tensor,
    SPLITS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PARTS: tl.constexpr,
    AHEAD: tl.constexpr,
    TURNED: tl.constexpr,
    HEIGHT: tl.constexpr,
) -> None:
    """One program's part of ``project``, which has ``width`` columns. ``words``: what ``begin_project`` loaded. HEIGHT:
    rows of the tile. ``added``: to its columns, or None."""
    depth: tl.constexpr = depth_of_split(weight.K, BLOCK_K, SPLITS)
    columns = tile * BLOCK_N + tl.arange(0, BLOCK_N)
    row = tl.arange(0, HEIGHT)[:, None]
    if weight.FORMAT >= FP8:
        total = multiply_once(
            rows_of_pass(x, max_rows, weight, HEIGHT), tile * BLOCK_N, split * depth, words, weight,
            TileShape(depth, BLOCK_N, BLOCK_K, PARTS, AHEAD, TURNED, SPLITS, 0),
        )  # fmt: skip
    else:
        total = multiply_rows(
            x, weight, columns, split * depth, max_rows, depth, BLOCK_N, BLOCK_K, AHEAD, SPLITS, tile * BLOCK_N, TURNED
        )
    total = scaled(total, weight, 0, columns)
    if added is not None:
        total += added.to(tl.float32)[None, :]
    at = out + (split * 16 + row) * width + columns[None, :]
    tl.store(at, total.to(out.dtype.element_ty), mask=(row < max_rows) & (columns[None, :] < width))


@early_kernel
def _project(
    x: tl.tensor, weight: tl.tensor, scales: tl.tensor, bias: tl.tensor, out: tl.tensor, max_rows: tl.tensor,
    width: tl.tensor,
    N: tl.constexpr, K: tl.constexpr, FORMAT: tl.constexpr, SPLITS: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, PARTS: tl.constexpr, AHEAD: tl.constexpr, EARLY: tl.constexpr, TURNED: tl.constexpr,
    HEIGHT: tl.constexpr,
) -> None:  # fmt: skip
    tile, split = tl.program_id(0), tl.program_id(1)
    words = begin_project(
        Matrix(weight, scales, N, K, FORMAT), tile, split, True, SPLITS, BLOCK_N, BLOCK_K, PARTS, AHEAD, TURNED, EARLY
    )
    added = None
    if bias is not None:
        columns = tile * BLOCK_N + tl.arange(0, BLOCK_N)
        inside = columns < (N if width is None else width)
        added = tl.load(bias + columns, mask=inside & (split == 0), other=0.0)
    if EARLY == COPIED:
        wait_behind_copies()
    else:
        wait_for_inputs()
    project_tile(
        x, Matrix(weight, scales, N, K, FORMAT), added, out, tile, split, max_rows, words,
        N if width is None else width, SPLITS, BLOCK_N, BLOCK_K, PARTS, AHEAD, TURNED, HEIGHT,
    )  # fmt: skip


@early_kernel
def _project_two(
    x: tl.tensor, few: tl.tensor, few_scales: tl.tensor, few_out: tl.tensor, weight: tl.tensor, scales: tl.tensor,
    out: tl.tensor, max_rows: tl.tensor,
    K: tl.constexpr, FEW_N: tl.constexpr, FEW_FORMAT: tl.constexpr, FEW_SPLITS: tl.constexpr,
    FEW_BLOCK_N: tl.constexpr, FEW_BLOCK_K: tl.constexpr, FEW_PARTS: tl.constexpr, FEW_TURNED: tl.constexpr,
    FEW_HEIGHT: tl.constexpr, N: tl.constexpr, FORMAT: tl.constexpr, SPLITS: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, PARTS: tl.constexpr, TURNED: tl.constexpr, HEIGHT: tl.constexpr, AHEAD: tl.constexpr,
    EARLY: tl.constexpr,
) -> None:  # fmt: skip
    few_tiles: tl.constexpr = (FEW_N + FEW_BLOCK_N - 1) // FEW_BLOCK_N
    few_programs: tl.constexpr = few_tiles * FEW_SPLITS
    tiles: tl.constexpr = (N + BLOCK_N - 1) // BLOCK_N
    program = tl.program_id(0)
    of_few = tl.minimum(program, few_programs - 1)
    of_many = tl.maximum(program - few_programs, 0)
    few_words = begin_project(
        Matrix(few, few_scales, FEW_N, K, FEW_FORMAT), of_few % few_tiles, of_few // few_tiles, program < few_programs,
        FEW_SPLITS, FEW_BLOCK_N, FEW_BLOCK_K, FEW_PARTS, AHEAD, FEW_TURNED, EARLY,
    )  # fmt: skip
    words = begin_project(
        Matrix(weight, scales, N, K, FORMAT), of_many % tiles, of_many // tiles, program >= few_programs, SPLITS,
        BLOCK_N, BLOCK_K, PARTS, AHEAD, TURNED, EARLY,
    )  # fmt: skip
    wait_for_inputs()
    if program < few_programs:
        project_tile(
            x, Matrix(few, few_scales, FEW_N, K, FEW_FORMAT), None, few_out, of_few % few_tiles, of_few // few_tiles,
            max_rows, few_words, FEW_N, FEW_SPLITS, FEW_BLOCK_N, FEW_BLOCK_K, FEW_PARTS, AHEAD, FEW_TURNED, FEW_HEIGHT,
        )  # fmt: skip
    else:
        project_tile(
            x, Matrix(weight, scales, N, K, FORMAT), None, out, of_many % tiles, of_many // tiles, max_rows, words,
            N, SPLITS, BLOCK_N, BLOCK_K, PARTS, AHEAD, TURNED, HEIGHT,
        )  # fmt: skip


@jit
def begin_gate_up(
    weight: Matrix, column: tl.tensor, there: tl.tensor, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    PARTS: tl.constexpr, AHEAD: tl.constexpr, TURNED: tl.constexpr, EARLY: tl.constexpr, INTER: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """Loads the first tiles of gate and up before the wait, as ``begin_project`` does for a single weight."""
    if weight.FORMAT >= FP8:
        depth: tl.constexpr = length_of(weight.K, BLOCK_K)
        wide: tl.constexpr = 2 * BLOCK_N
        return first_words(0, column, 0, there, weight, TileShape(depth, wide, BLOCK_K, PARTS, AHEAD, TURNED, 1, INTER))
    else:
        if EARLY > 0:
            start = place_of(0, column, 0, weight.N, weight.K, BLOCK_K, TURNED)
            prefetch(weight, 0, column, start, there, 2 * BLOCK_N, BLOCK_K, EARLY, INTER)
        return 0


@jit
def gate_up_tile(
    x: tl.tensor, weight: Matrix, column: tl.tensor, max_rows: tl.tensor, words: tl.tensor, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, PARTS: tl.constexpr, AHEAD: tl.constexpr, TURNED: tl.constexpr, INTER: tl.constexpr,
    HEIGHT: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:  # fmt: skip
    """Gate and up, fp32 [HEIGHT, BLOCK_N] each, of a packed weight."""
    depth: tl.constexpr = length_of(weight.K, BLOCK_K)
    both = multiply_once(
        rows_of_pass(x, max_rows, weight, HEIGHT), column, 0, words, weight,
        TileShape(depth, 2 * BLOCK_N, BLOCK_K, PARTS, AHEAD, TURNED, 1, INTER),
    )  # fmt: skip
    return gate_and_up(both, BLOCK_N)  # type: ignore[no-any-return]


@early_kernel
def _gate_up(
    x: tl.tensor, weight: tl.tensor, scales: tl.tensor, out: tl.tensor, max_rows: tl.tensor,
    INTER: tl.constexpr, K: tl.constexpr, FORMAT: tl.constexpr, SILU: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, PARTS: tl.constexpr, AHEAD: tl.constexpr, EARLY: tl.constexpr, TURNED: tl.constexpr,
    HEIGHT: tl.constexpr,
) -> None:  # fmt: skip
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    words = begin_gate_up(
        Matrix(weight, scales, 2 * INTER, K, FORMAT), tl.program_id(0) * BLOCK_N, True, BLOCK_N, BLOCK_K, PARTS, AHEAD,
        TURNED, EARLY, INTER,
    )  # fmt: skip
    wait_for_inputs()
    row = tl.arange(0, HEIGHT)[:, None]
    if FORMAT >= FP8:
        gate, up = gate_up_tile(
            x, Matrix(weight, scales, 2 * INTER, K, FORMAT), tl.program_id(0) * BLOCK_N, max_rows, words, BLOCK_N,
            BLOCK_K, PARTS, AHEAD, TURNED, INTER, HEIGHT,
        )  # fmt: skip
    else:
        even: tl.constexpr = K % BLOCK_K == 0
        aligned: tl.constexpr = even and INTER % BLOCK_N == 0
        gate = tl.zeros([16, BLOCK_N], dtype=tl.float32)
        up = tl.zeros([16, BLOCK_N], dtype=tl.float32)
        for step in tl.range(0, K, BLOCK_K):
            if step == last_asked(K, BLOCK_K, AHEAD):
                let_next_start()
            at = place_of(step, tl.program_id(0) * BLOCK_N, 0, 2 * INTER, K, BLOCK_K, TURNED) + tl.arange(0, BLOCK_K)
            gate_tile = load_factor(Matrix(weight, scales, INTER, K, FORMAT), 0, columns, at, x, aligned)
            up_tile = load_factor(Matrix(weight, scales, INTER, K, FORMAT), INTER, columns, at, x, aligned)
            rows = load_rows(x, max_rows, at, K, even)
            gate = dot(rows, gate_tile.T, gate)
            up = dot(rows, up_tile.T, up)
        gate = scaled(gate, Matrix(weight, scales, INTER, K, FORMAT), 0, columns)
        up = scaled(up, Matrix(weight, scales, 2 * INTER, K, FORMAT), 0, INTER + columns)
    act = activate(gate, SILU) * up
    mask = (row < max_rows) & (columns[None, :] < INTER)
    tl.store(out + row * INTER + columns[None, :], act.to(out.dtype.element_ty), mask=mask)
