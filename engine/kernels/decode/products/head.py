"""The language-model head: logits over the vocabulary, softly capped, and the most likely token."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ...toolchain.jit import MAX_ROWS, cdiv, jit, power_of_two, tl
from ...weights.matrix import Matrix, scaled
from ...weights.weight import Weight
from ..tiling.tiles import ROW_TILES, RowTiles, Tiles
from .dense import multiply_rows


def capped_logits(hidden: Tensor, embedding: Weight, softcap: float | None) -> Tensor:
    """fp32 logits [n, vocab] of normed rows [n, hidden] over a tied embedding [vocab, hidden], bent into (-softcap,
    softcap) (``final_logit_softcapping``) before temperature, top-k and top-p."""
    logits = embedding.linear(hidden).float()
    return logits if softcap is None else softcap * torch.tanh(logits / softcap)


@dataclass(frozen=True, slots=True)
class HeadOutput:
    """What ``head_rows`` and ``pick_rows`` fill."""

    logits: Tensor | None
    """fp32 [16, vocab]; None where only the best token is wanted."""
    tile_best: Tensor
    """fp32 [16, tiles]: the highest logit of each tile of the vocabulary."""
    tile_token: Tensor
    """int32 [16, tiles]: the token of each tile's highest logit, the lowest of equals."""
    tile_mass: Tensor
    """fp32 [16, tiles]: the sum of exp(logit - highest) over the tile."""
    token: Tensor
    """int64 [16]: the argmax, the lowest of equals."""
    probability: Tensor
    """fp32 [16]: the softmax probability, at temperature 1, of ``token``."""
    peak: Tensor
    """fp32 [16]: the logit of ``token``; any token's probability is exp(logit - peak) * probability."""
    ids: Tensor | None = None
    """int64 [vocab]: the ids by which ``token`` tells tokens, for a head with a vocabulary of its own; None where they
    are its rows' numbers."""

    @classmethod
    def allocate(
        cls, vocab: int, tiles: Tiles, device: torch.device, keep_logits: bool = True, rows: int = MAX_ROWS
    ) -> HeadOutput:
        """Allocates the tensors. ``rows``: those of all tiles of a wide pass."""
        count = cdiv(vocab, tiles.columns)
        return cls(
            torch.zeros(rows, vocab, device=device) if keep_logits else None,
            torch.zeros(rows, count, device=device),
            torch.zeros(rows, count, dtype=torch.int32, device=device),
            torch.zeros(rows, count, device=device),
            torch.zeros(rows, dtype=torch.int64, device=device),
            torch.zeros(rows, device=device),
            torch.zeros(rows, device=device),
        )

    def tile(self, number: int) -> HeadOutput:
        """The output of one tile of 16 rows of a wide pass."""
        rows = slice(number * MAX_ROWS, (number + 1) * MAX_ROWS)
        rest = self.tile_best, self.tile_token, self.tile_mass, self.token, self.probability, self.peak
        return HeadOutput(None if self.logits is None else self.logits[rows], *(tensor[rows] for tensor in rest))


def head_rows(
    hidden: Tensor,
    embedding: Weight,
    softcap: float | None,
    out: HeadOutput,
    tiles: Tiles,
    max_rows: int = MAX_ROWS,
) -> None:
    """``capped_logits`` of normed rows [16, hidden] in fp32, and each tile's best token, from which ``pick_rows``
    picks. ``tiles`` are those ``out`` was allocated for."""
    vocab, size = embedding.shape
    assert embedding.is_contiguous and hidden.shape[1] == size and out.tile_best.shape[1] == cdiv(vocab, tiles.columns)
    _head[(cdiv(vocab, tiles.columns),)](
        hidden, embedding.values, embedding.scales, out.logits, out.tile_best, out.tile_token, out.tile_mass,
        0.0 if softcap is None else softcap, max_rows,
        VOCAB=vocab, K=size, FORMAT=embedding.format, CAPPED=softcap is not None, BLOCK_N=tiles.columns,
        BLOCK_K=tiles.depth, AHEAD=tiles.ahead, **tiles.options,
    )  # fmt: skip


def pick_rows(out: HeadOutput, tiles: RowTiles = ROW_TILES, max_rows: int = MAX_ROWS) -> None:
    """The most likely token of each row and its probability, from what ``head_rows`` left of each tile."""
    count = out.tile_best.shape[1]
    _pick[(max_rows,)](
        out.tile_best, out.tile_token, out.tile_mass, out.token, out.probability, out.peak, out.ids,
        TILES=count, BLOCK=power_of_two(count), **tiles.options,
    )  # fmt: skip


@early_kernel
def _head(
    hidden: tl.tensor, weight: tl.tensor, scales: tl.tensor, logits: tl.tensor, tile_best: tl.tensor,
    tile_token: tl.tensor, tile_mass: tl.tensor, softcap: tl.tensor, max_rows: tl.tensor,
    VOCAB: tl.constexpr, K: tl.constexpr, FORMAT: tl.constexpr, CAPPED: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, AHEAD: tl.constexpr,
) -> None:  # fmt: skip
    wait_for_inputs()
    depth: tl.constexpr = (K + BLOCK_K - 1) // BLOCK_K * BLOCK_K
    tile = tl.program_id(0)
    columns = tile * BLOCK_N + tl.arange(0, BLOCK_N)
    logit = multiply_rows(
        hidden, Matrix(weight, scales, VOCAB, K, FORMAT), columns, 0, max_rows, depth, BLOCK_N, BLOCK_K, AHEAD
    )
    logit = scaled(logit, Matrix(weight, scales, VOCAB, K, FORMAT), 0, columns)
    leave_best(logit, logits, tile_best, tile_token, tile_mass, softcap, 0, max_rows, VOCAB, CAPPED, BLOCK_N)


@jit
def leave_best(
    logit: tl.tensor, logits: tl.tensor, tile_best: tl.tensor, tile_token: tl.tensor, tile_mass: tl.tensor,
    softcap: tl.tensor, first: tl.constexpr, max_rows: tl.tensor, VOCAB: tl.constexpr, CAPPED: tl.constexpr,
    BLOCK_N: tl.constexpr,
) -> None:  # fmt: skip
    """Fills, for sixteen rows from ``first`` on, what ``HeadOutput`` holds of this program's tile of the vocabulary,
    whose sums are ``logit`` [16, BLOCK_N]."""
    tiles: tl.constexpr = (VOCAB + BLOCK_N - 1) // BLOCK_N
    tile = tl.program_id(0)
    columns = tile * BLOCK_N + tl.arange(0, BLOCK_N)
    row = first + tl.arange(0, 16)
    if CAPPED:  # cap * tanh(logit / cap), tanh written as a sigmoid
        logit = softcap * (2.0 * tl.sigmoid(2.0 * logit / softcap) - 1.0)
    live = (row < max_rows)[:, None] & (columns < VOCAB)[None, :]
    if logits is not None:
        tl.store(logits + row[:, None] * VOCAB + columns[None, :], logit, mask=live)
    logit = tl.where((columns < VOCAB)[None, :], logit, float("-inf"))
    best = tl.max(logit, axis=1)
    # NaNs equal nothing, not even the highest: what is picked is a token all the same.
    token = tl.min(tl.where(logit == best[:, None], columns[None, :], VOCAB - 1), axis=1)
    mass = tl.sum(tl.exp(logit - best[:, None]), axis=1)
    at = row * tiles + tile
    tl.store(tile_best + at, best, mask=row < max_rows)
    tl.store(tile_token + at, token, mask=row < max_rows)
    tl.store(tile_mass + at, mass, mask=row < max_rows)


@early_kernel
def _pick(
    tile_best: tl.tensor,
    tile_token: tl.tensor,
    tile_mass: tl.tensor,
    token: tl.tensor,
    probability: tl.tensor,
    peak: tl.tensor,
    ids: tl.tensor,
    TILES: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    wait_for_inputs()
    row = tl.program_id(0)
    tile = tl.arange(0, BLOCK)
    at = row * TILES + tile
    best = tl.load(tile_best + at, mask=tile < TILES, other=float("-inf"))
    candidate = tl.load(tile_token + at, mask=tile < TILES, other=0)
    mass = tl.load(tile_mass + at, mask=tile < TILES, other=0.0)
    let_next_start()
    highest = tl.max(best, axis=0)
    winner = tl.min(tl.where(best == highest, candidate, 2147483647), axis=0)
    winner = tl.where(winner == 2147483647, 0, winner)  # only NaNs: see `leave_best`
    total = tl.sum(mass * tl.exp(best - highest), axis=0)
    token_id = winner.to(tl.int64) if ids is None else tl.load(ids + winner)
    tl.store(token + row, token_id)
    tl.store(probability + row, 1.0 / total)
    tl.store(peak + row, highest)
