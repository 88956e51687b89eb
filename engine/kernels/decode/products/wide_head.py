"""The head of a wide pass: fills for 32 or 64 rows what ``head.py`` fills for sixteen. The weight is read once, and
each sixteen rows are a product of their own, with the sums that they have alone."""

from __future__ import annotations

from torch import Tensor

from ...toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ...toolchain.jit import MAX_ROWS, cdiv, dot, tl
from ...weights.matrix import Matrix, load_factor, scaled
from ...weights.weight import Weight
from ..tiling.tiles import Tiles
from .dense import load_rows
from .head import HeadOutput, leave_best
from .tile_shape import last_asked


def wide_head_rows(hidden: Tensor, embedding: Weight, softcap: float | None, out: HeadOutput, tiles: Tiles) -> None:
    """``head_rows`` of normed rows [32 or 64, hidden]. ``out`` has room for as many rows, or more."""
    vocab, size = embedding.shape
    rows = len(hidden)
    assert rows in (2 * MAX_ROWS, 4 * MAX_ROWS) and hidden.is_contiguous() and hidden.shape[1] == size
    assert embedding.is_contiguous and out.tile_best.shape[1] == cdiv(vocab, tiles.columns)
    _wide_head[(cdiv(vocab, tiles.columns),)](
        hidden, embedding.values, embedding.scales, out.logits, out.tile_best, out.tile_token, out.tile_mass,
        0.0 if softcap is None else softcap, rows,
        VOCAB=vocab, K=size, FORMAT=embedding.format, CAPPED=softcap is not None, FOUR=rows == 4 * MAX_ROWS,
        BLOCK_N=tiles.columns, BLOCK_K=tiles.depth, AHEAD=tiles.ahead, **tiles.options,
    )  # fmt: skip


@early_kernel
def _wide_head(
    hidden: tl.tensor, weight: tl.tensor, scales: tl.tensor, logits: tl.tensor, tile_best: tl.tensor,
    tile_token: tl.tensor, tile_mass: tl.tensor, softcap: tl.tensor, rows: tl.tensor,
    VOCAB: tl.constexpr, K: tl.constexpr, FORMAT: tl.constexpr, CAPPED: tl.constexpr, FOUR: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, AHEAD: tl.constexpr,
) -> None:  # fmt: skip
    wait_for_inputs()
    even: tl.constexpr = K % BLOCK_K == 0
    aligned: tl.constexpr = even and VOCAB % BLOCK_N == 0
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    one = tl.zeros([16, BLOCK_N], dtype=tl.float32)
    two, three, four = one, one, one
    for step in tl.range(0, K, BLOCK_K):
        if step == last_asked(K, BLOCK_K, AHEAD):
            let_next_start()
        at = step + tl.arange(0, BLOCK_K)
        tile = load_factor(Matrix(weight, scales, VOCAB, K, FORMAT), 0, columns, at, hidden, aligned).T
        one = dot(load_rows(hidden, 16, at, K, even), tile, one)
        two = dot(load_rows(hidden + 16 * K, 16, at, K, even), tile, two)
        if FOUR:
            three = dot(load_rows(hidden + 32 * K, 16, at, K, even), tile, three)
            four = dot(load_rows(hidden + 48 * K, 16, at, K, even), tile, four)
    one = scaled(one, Matrix(weight, scales, VOCAB, K, FORMAT), 0, columns)
    two = scaled(two, Matrix(weight, scales, VOCAB, K, FORMAT), 0, columns)
    leave_best(one, logits, tile_best, tile_token, tile_mass, softcap, 0, rows, VOCAB, CAPPED, BLOCK_N)
    leave_best(two, logits, tile_best, tile_token, tile_mass, softcap, 16, rows, VOCAB, CAPPED, BLOCK_N)
    if FOUR:
        three = scaled(three, Matrix(weight, scales, VOCAB, K, FORMAT), 0, columns)
        four = scaled(four, Matrix(weight, scales, VOCAB, K, FORMAT), 0, columns)
        leave_best(three, logits, tile_best, tile_token, tile_mass, softcap, 32, rows, VOCAB, CAPPED, BLOCK_N)
        leave_best(four, logits, tile_best, tile_token, tile_mass, softcap, 48, rows, VOCAB, CAPPED, BLOCK_N)
