"""The experts of a layer for at most 16 rows, behind ``router.gate_up_and_route``; see ``reference/moe.py``. A chosen
expert is read once, and each (row, choice) pair has its own place, so the order of programs doesn't matter. The dense
MLP's second product shares the launch of the experts' first: alone it leaves a GPU idle."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ....layer_config import Activation
from ...shared.activation import activate, activate_clamped
from ...toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ...toolchain.jit import MAX_ROWS, cdiv, dot, jit, tl
from ...weights.matrix import FP8, Matrix, load_factor, scaled
from ...weights.weight import Weight
from ..products.dense import begin_project, project_tile
from ..products.packed import (
    first_words,
    gate_and_up,
    height_of,
    is_packed,
    load_rows,
    multiply_one_of_many,
    rows_of_pairs,
)
from ..products.prefetch import prefetch
from ..products.tile_shape import TileShape, last_asked, length_of, place_of
from ..tiling.tiles import Tiles
from .router import Assignment


@dataclass(frozen=True, slots=True)
class DenseDown:
    """The dense MLP's second product, which runs beside the experts' first: see ``dense.project``."""

    act: Tensor
    weight: Weight
    out: Tensor
    """The sums of its splits, as ``dense.partial_sums`` makes them."""
    tiles: Tiles
    """The product's tiles. Stages and warps are those of the launch; of these only the parts of a packed weight's depth
    count."""

    @property
    def programs(self) -> int:
        return cdiv(self.weight.shape[0], self.tiles.columns) * self.tiles.splits

    @property
    def fits(self) -> bool:
        """Whether columns, depth and splits of product and tiles fit one another."""
        columns, depth = self.weight.shape
        sums = self.tiles.splits * MAX_ROWS * columns
        return self.weight.is_contiguous and self.act.shape[1] == depth and self.out.numel() == sums


def expert_gate_up_rows(
    x: Tensor,
    gate_up: Weight,
    assignment: Assignment,
    out: Tensor,
    tiles: Tiles,
    dense: DenseDown | None,
    max_rows: int = MAX_ROWS,
    activation: Activation = "gelu_tanh",
    bias: Tensor | None = None,
) -> None:
    """``out`` [16 * top_k, inter] = act(gate) * up of every pair, for rows x [16, hidden]; beside it, ``dense``. There
    may be more rows, if the assignment is one for as many: see ``wide_experts``. ``gate_up`` has gates first, but for
    ``clamped_silu``, where gates and ups take turns and have a ``bias`` [experts, 2 * inter] added to them: there it
    must be given."""
    _, doubled, hidden = gate_up.shape
    inter, top_k, entries = doubled // 2, assignment.weights.shape[1], len(assignment.experts)
    assert x.shape[1] == hidden and out.shape == (assignment.weights.numel(), inter)
    assert gate_up.is_contiguous and (dense is None or dense.fits)
    assert (bias is not None) == (activation == "clamped_silu") and _is_bias(bias, gate_up)
    dense_weight = None if dense is None else dense.weight
    columns, depth = (0, 0) if dense_weight is None else dense_weight.shape
    beside_tiles = tiles if dense is None else dense.tiles
    programs = 0 if dense is None else dense.programs
    _expert_gate_up[(programs + _expert_programs(inter, entries, top_k, tiles, max_rows),)](
        x, gate_up.values, gate_up.scales, assignment.experts, assignment.pairs, out,
        None if dense is None else dense.act, None if dense_weight is None else dense_weight.values,
        None if dense_weight is None else dense_weight.scales, None if dense is None else dense.out, bias, max_rows,
        EXPERTS=entries, TOP_K=top_k, INTER=inter, K=hidden, FORMAT=gate_up.format, SILU=activation == "silu",
        CLAMPED=activation == "clamped_silu", BLOCK_N=tiles.columns, BLOCK_K=tiles.depth, DENSE_N=columns,
        DENSE_K=depth, DENSE_FORMAT=gate_up.format if dense_weight is None else dense_weight.format,
        DENSE_SPLITS=beside_tiles.splits, DENSE_BLOCK_N=beside_tiles.columns, DENSE_BLOCK_K=beside_tiles.depth,
        DENSE_PARTS=beside_tiles.warps, DENSE_EARLY=tiles.early or 0,
        DENSE_TURNED=beside_tiles.turned, PARTS=tiles.warps, AHEAD=tiles.ahead, TURNED=tiles.turned,
        HEIGHT=_height(gate_up, assignment, max_rows), DENSE_HEIGHT=height_of(dense_weight or gate_up, max_rows),
        **tiles.options,
    )  # fmt: skip


def expert_down_rows(
    act: Tensor,
    down: Weight,
    assignment: Assignment,
    out: Tensor,
    tiles: Tiles,
    max_rows: int = MAX_ROWS,
    bias: Tensor | None = None,
) -> None:
    """``out`` [16, top_k, hidden] = each pair's expert output, plus its expert's ``bias`` [experts, hidden], times its
    weight, in any float dtype; x's dtype halves the bytes and rounds like the modules. The launch just before must not
    write the assignment, which is read early."""
    _, hidden, inter = down.shape
    (rows, top_k), entries = assignment.weights.shape, len(assignment.experts)
    assert act.shape == (rows * top_k, inter) and out.shape == (rows, top_k, hidden)
    assert down.is_contiguous and _is_bias(bias, down)
    _expert_down[(_expert_programs(hidden, entries, top_k, tiles, max_rows),)](
        act, down.values, down.scales, assignment.experts, assignment.pairs, assignment.weights, out, bias,
        EXPERTS=entries, N=hidden, K=inter, FORMAT=down.format, BLOCK_N=tiles.columns, BLOCK_K=tiles.depth,
        PARTS=tiles.warps, AHEAD=tiles.ahead, EARLY=tiles.early or 0, TURNED=tiles.turned,
        HEIGHT=_height(down, assignment, max_rows), **tiles.options,
    )  # fmt: skip


def _expert_programs(columns: int, entries: int, top_k: int, tiles: Tiles, max_rows: int) -> int:
    """How many programs are launched: as many as fit on the GPU at once. They share the tiles of the experts that run,
    each taking every nth."""
    return min(tiles.programs, min(entries, max_rows * top_k) * cdiv(columns, tiles.columns))


def _height(weight: Weight, assignment: Assignment, max_rows: int) -> int:
    """Rows of a tile: as many as an entry may have; sixteen for weights that aren't packed."""
    return min(height_of(weight, max_rows), assignment.most) if is_packed(weight) else MAX_ROWS


def _is_bias(bias: Tensor | None, weight: Weight) -> bool:
    """Whether a bias is one that kernels can add: none, or with an entry for each output of each expert."""
    return bias is None or (bias.is_contiguous() and bias.shape == weight.shape[:2])


@jit
def load_item(
    experts: tl.tensor, pairs: tl.tensor, item: tl.tensor, TILES: tl.constexpr, EXPERTS: tl.constexpr,
    HEIGHT: tl.constexpr, FORMAT: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:  # fmt: skip
    """A tile's expert and the first HEIGHT of its pairs' 16 places, loaded a tile ahead, since a round trip to memory
    costs as much as 3 MB. A number below zero is no pair: -1, or, for packed weights (``rows_of_pairs``), the
    complement of the first pair."""
    slot = item // TILES
    exists = slot < EXPERTS
    expert = tl.load(experts + slot, mask=exists, other=-1)
    pair = tl.load(pairs + slot * 16 + tl.arange(0, HEIGHT), mask=exists, other=-1)
    if FORMAT >= FP8:
        pair = tl.where(pair < 0, -1 - tl.load(pairs + slot * 16, mask=exists, other=0), pair)
    return expert, pair


@jit
def _multiply(
    source: tl.tensor, live: tl.tensor, weight: Matrix, first: tl.tensor, column: tl.tensor, last: tl.tensor,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, AHEAD: tl.constexpr, TURNED: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """fp32 [16, BLOCK_N]: rows (pointers [16, 1], those that are ``live``) times an expert's rows from ``column`` on,
    of a weight that isn't packed and in which the expert begins at row ``first``. Lets the next kernel start if it is
    the ``last`` product."""
    columns = column + tl.arange(0, BLOCK_N)
    even: tl.constexpr = weight.K % BLOCK_K == 0
    aligned: tl.constexpr = even and weight.N % BLOCK_N == 0
    total = tl.zeros([16, BLOCK_N], dtype=tl.float32)
    for step in tl.range(0, weight.K, BLOCK_K):
        if last & (step == last_asked(weight.K, BLOCK_K, AHEAD)):
            let_next_start()
        at = place_of(step, column, first, weight.N, weight.K, BLOCK_K, TURNED) + tl.arange(0, BLOCK_K)
        tile = load_factor(weight, first, columns, at, source, aligned)
        rows = tl.load(source + at[None, :], mask=live if even else live & (at[None, :] < weight.K), other=0.0)
        total = dot(rows, tile.T, total)
    return scaled(total, weight, first, columns)


@jit
def _biases(bias: tl.tensor, first: tl.tensor, column: tl.tensor, N: tl.constexpr, BLOCK_N: tl.constexpr) -> tl.tensor:
    """Biases of an expert's rows from ``column`` on, fp32 [1, BLOCK_N], loaded before they are needed."""
    columns = column + tl.arange(0, BLOCK_N)
    return tl.load(bias + first + columns, mask=columns < N, other=0.0).to(tl.float32)[None, :]


@jit
def _gate_up_tiles(
    x: tl.tensor, gate_up: tl.tensor, scales: tl.tensor, experts: tl.tensor, pairs: tl.tensor, out: tl.tensor,
    bias: tl.tensor,
    EXPERTS: tl.constexpr, TOP_K: tl.constexpr, INTER: tl.constexpr, K: tl.constexpr, FORMAT: tl.constexpr,
    SILU: tl.constexpr, CLAMPED: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, PARTS: tl.constexpr,
    AHEAD: tl.constexpr, TURNED: tl.constexpr, BEFORE: tl.constexpr, HEIGHT: tl.constexpr,
) -> None:  # fmt: skip
    """The work of one of the experts' programs; the launch has BEFORE other programs in front of these."""
    tiles: tl.constexpr = (INTER + BLOCK_N - 1) // BLOCK_N
    even: tl.constexpr = K % BLOCK_K == 0
    aligned: tl.constexpr = even and INTER % BLOCK_N == 0
    depth: tl.constexpr = length_of(K, BLOCK_K)
    wide: tl.constexpr = 2 * BLOCK_N
    # Where gates and ups alternate, the columns of a gate and its up are neighbours.
    across: tl.constexpr = wide if CLAMPED else BLOCK_N
    apart: tl.constexpr = 0 if CLAMPED else INTER
    item = tl.program_id(0) - BEFORE
    expert, pair = load_item(experts, pairs, item, tiles, EXPERTS, HEIGHT, FORMAT)
    first = tl.maximum(expert, 0).to(tl.int64) * (2 * INTER)
    if FORMAT >= FP8:
        rows = rows_of_pairs(x, pair, Matrix(gate_up, scales, 2 * INTER, K, FORMAT), TOP_K)
        words = first_words(
            first, item % tiles * across, 0, expert >= 0, Matrix(gate_up, scales, 2 * INTER, K, FORMAT),
            TileShape(depth, wide, BLOCK_K, PARTS, AHEAD, TURNED, 1, apart),
        )  # fmt: skip
        loaded = load_rows(
            rows, first, item % tiles * across, 0, 0, Matrix(gate_up, scales, 2 * INTER, K, FORMAT),
            TileShape(depth, wide, BLOCK_K, PARTS, AHEAD, TURNED, 1, apart),
        )  # fmt: skip
        begun = rows, words, loaded
    while expert >= 0:
        following = item + tl.num_programs(0) - BEFORE
        next_expert, next_pair = load_item(experts, pairs, following, tiles, EXPERTS, HEIGHT, FORMAT)
        first = expert.to(tl.int64) * (2 * INTER)
        pair_column = pair[:, None]  # all uses of it share one change of layout
        live = pair_column >= 0
        columns = item % tiles * BLOCK_N + tl.arange(0, BLOCK_N)
        if FORMAT >= FP8:
            if CLAMPED:
                added = _biases(bias, first, item % tiles * wide, 2 * INTER, wide)
            both, begun = multiply_one_of_many(
                x, begun, expert, item % tiles * across, next_pair, next_expert, following % tiles * across,
                Matrix(gate_up, scales, 2 * INTER, K, FORMAT),
                TileShape(depth, wide, BLOCK_K, PARTS, AHEAD, TURNED, 1, apart), TOP_K,
            )  # fmt: skip
            if CLAMPED:
                gate, up = tl.split(tl.reshape(both + added, [HEIGHT, BLOCK_N, 2]))
            else:
                gate, up = gate_and_up(both, BLOCK_N)
        elif CLAMPED:
            added = _biases(bias, first, item % tiles * wide, 2 * INTER, wide)
            both = _multiply(
                x + tl.maximum(pair_column, 0) // TOP_K * K, live, Matrix(gate_up, scales, 2 * INTER, K, FORMAT), first,
                item % tiles * wide, next_expert < 0, wide, BLOCK_K, AHEAD, TURNED,
            )  # fmt: skip
            gate, up = tl.split(tl.reshape(both + added, [16, BLOCK_N, 2]))
        else:
            source = x + tl.maximum(pair_column, 0) // TOP_K * K
            gate = tl.zeros([16, BLOCK_N], dtype=tl.float32)
            up = tl.zeros([16, BLOCK_N], dtype=tl.float32)
            for step in tl.range(0, K, BLOCK_K):
                if (next_expert < 0) & (step == last_asked(K, BLOCK_K, AHEAD)):
                    let_next_start()
                at = place_of(step, item % tiles * BLOCK_N, first, 2 * INTER, K, BLOCK_K, TURNED)
                at += tl.arange(0, BLOCK_K)
                gate_tile = load_factor(Matrix(gate_up, scales, INTER, K, FORMAT), first, columns, at, x, aligned)
                up_tile = load_factor(Matrix(gate_up, scales, INTER, K, FORMAT), first + INTER, columns, at, x, aligned)
                loaded = tl.load(source + at[None, :], mask=live if even else live & (at[None, :] < K), other=0.0)
                gate = dot(loaded, gate_tile.T, gate)
                up = dot(loaded, up_tile.T, up)
            gate = scaled(gate, Matrix(gate_up, scales, INTER, K, FORMAT), first, columns)
            up = scaled(up, Matrix(gate_up, scales, INTER, K, FORMAT), first + INTER, columns)
        act = activate_clamped(gate, up) if CLAMPED else activate(gate, SILU) * up
        act = act.to(out.dtype.element_ty)
        tl.store(out + pair_column * INTER + columns[None, :], act, mask=live & (columns[None, :] < INTER))
        item, expert, pair = following, next_expert, next_pair


@early_kernel
def _expert_gate_up(
    x: tl.tensor, gate_up: tl.tensor, scales: tl.tensor, experts: tl.tensor, pairs: tl.tensor, out: tl.tensor,
    dense_act: tl.tensor, dense_weight: tl.tensor, dense_scales: tl.tensor, dense_out: tl.tensor, bias: tl.tensor,
    max_rows: tl.tensor,
    EXPERTS: tl.constexpr, TOP_K: tl.constexpr, INTER: tl.constexpr, K: tl.constexpr, FORMAT: tl.constexpr,
    SILU: tl.constexpr, CLAMPED: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, DENSE_N: tl.constexpr,
    DENSE_K: tl.constexpr, DENSE_FORMAT: tl.constexpr, DENSE_SPLITS: tl.constexpr, DENSE_BLOCK_N: tl.constexpr,
    DENSE_BLOCK_K: tl.constexpr, DENSE_PARTS: tl.constexpr, DENSE_EARLY: tl.constexpr, PARTS: tl.constexpr,
    AHEAD: tl.constexpr, TURNED: tl.constexpr, DENSE_TURNED: tl.constexpr, HEIGHT: tl.constexpr,
    DENSE_HEIGHT: tl.constexpr,
) -> None:  # fmt: skip
    dense_tiles: tl.constexpr = (DENSE_N + DENSE_BLOCK_N - 1) // DENSE_BLOCK_N
    dense_programs: tl.constexpr = dense_tiles * DENSE_SPLITS
    dense_tile = tl.program_id(0) % tl.maximum(dense_tiles, 1)
    dense_split = tl.program_id(0) // tl.maximum(dense_tiles, 1)
    if dense_programs > 0:
        dense_words = begin_project(
            Matrix(dense_weight, dense_scales, DENSE_N, DENSE_K, DENSE_FORMAT), dense_tile,
            tl.minimum(dense_split, DENSE_SPLITS - 1), tl.program_id(0) < dense_programs, DENSE_SPLITS, DENSE_BLOCK_N,
            DENSE_BLOCK_K, DENSE_PARTS, AHEAD, DENSE_TURNED, DENSE_EARLY,
        )  # fmt: skip
    wait_for_inputs()
    if dense_programs > 0:
        if tl.program_id(0) < dense_programs:
            project_tile(
                dense_act, Matrix(dense_weight, dense_scales, DENSE_N, DENSE_K, DENSE_FORMAT), None, dense_out,
                dense_tile, dense_split, max_rows, dense_words, DENSE_N, DENSE_SPLITS, DENSE_BLOCK_N, DENSE_BLOCK_K,
                DENSE_PARTS, AHEAD, DENSE_TURNED, DENSE_HEIGHT,
            )  # fmt: skip
        else:
            _gate_up_tiles(
                x, gate_up, scales, experts, pairs, out, bias, EXPERTS, TOP_K, INTER, K, FORMAT, SILU, CLAMPED, BLOCK_N,
                BLOCK_K, PARTS, AHEAD, TURNED, dense_programs, HEIGHT,
            )  # fmt: skip
    else:
        _gate_up_tiles(
            x, gate_up, scales, experts, pairs, out, bias, EXPERTS, TOP_K, INTER, K, FORMAT, SILU, CLAMPED, BLOCK_N,
            BLOCK_K, PARTS, AHEAD, TURNED, dense_programs, HEIGHT,
        )  # fmt: skip


@early_kernel
def _expert_down(
    act: tl.tensor, down: tl.tensor, scales: tl.tensor, experts: tl.tensor, pairs: tl.tensor, weights: tl.tensor,
    out: tl.tensor, bias: tl.tensor,
    EXPERTS: tl.constexpr, N: tl.constexpr, K: tl.constexpr, FORMAT: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, PARTS: tl.constexpr, AHEAD: tl.constexpr, EARLY: tl.constexpr, TURNED: tl.constexpr,
    HEIGHT: tl.constexpr,
) -> None:  # fmt: skip
    tiles: tl.constexpr = (N + BLOCK_N - 1) // BLOCK_N
    depth: tl.constexpr = length_of(K, BLOCK_K)
    item = tl.program_id(0)
    # What the launch before the last has chosen may be read at once.
    expert, pair = load_item(experts, pairs, item, tiles, EXPERTS, HEIGHT, FORMAT)
    first = tl.maximum(expert, 0).to(tl.int64) * N
    if FORMAT >= FP8:
        words = first_words(
            first, item % tiles * BLOCK_N, 0, expert >= 0, Matrix(down, scales, N, K, FORMAT),
            TileShape(depth, BLOCK_N, BLOCK_K, PARTS, AHEAD, TURNED, 1, 0),
        )  # fmt: skip
    elif EARLY > 0:
        start = place_of(0, item % tiles * BLOCK_N, tl.maximum(expert, 0) * N, N, K, BLOCK_K, TURNED)
        prefetch(
            Matrix(down, scales, N, K, FORMAT), first, item % tiles * BLOCK_N, start, expert >= 0, BLOCK_N, BLOCK_K,
            EARLY,
        )  # fmt: skip
    wait_for_inputs()
    if FORMAT >= FP8:
        rows = rows_of_pairs(act, pair, Matrix(down, scales, N, K, FORMAT), 1)
        loaded = load_rows(
            rows, first, item % tiles * BLOCK_N, 0, 0, Matrix(down, scales, N, K, FORMAT),
            TileShape(depth, BLOCK_N, BLOCK_K, PARTS, AHEAD, TURNED, 1, 0),
        )  # fmt: skip
        begun = rows, words, loaded
    while expert >= 0:
        following = item + tl.num_programs(0)
        next_expert, next_pair = load_item(experts, pairs, following, tiles, EXPERTS, HEIGHT, FORMAT)
        first = expert.to(tl.int64) * N
        counts = tl.load(weights + tl.maximum(pair, 0))
        pair_column = pair[:, None]  # see above
        live = pair_column >= 0
        columns = item % tiles * BLOCK_N + tl.arange(0, BLOCK_N)
        if bias is not None:
            added = _biases(bias, first, item % tiles * BLOCK_N, N, BLOCK_N)
        if FORMAT >= FP8:
            total, begun = multiply_one_of_many(
                act, begun, expert, item % tiles * BLOCK_N, next_pair, next_expert, following % tiles * BLOCK_N,
                Matrix(down, scales, N, K, FORMAT),
                TileShape(depth, BLOCK_N, BLOCK_K, PARTS, AHEAD, TURNED, 1, 0), 1,
            )  # fmt: skip
        else:
            total = _multiply(
                act + tl.maximum(pair_column, 0) * K, live, Matrix(down, scales, N, K, FORMAT), first,
                item % tiles * BLOCK_N, next_expert < 0, BLOCK_N, BLOCK_K, AHEAD, TURNED,
            )  # fmt: skip
        if bias is not None:
            total += added
        weighted = (total * counts[:, None]).to(out.dtype.element_ty)
        tl.store(out + pair_column * N + columns[None, :], weighted, mask=live & (columns[None, :] < N))
        item, expert, pair = following, next_expert, next_pair
