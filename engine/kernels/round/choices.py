"""Picks the drafter's four best tokens for each position, where trees are drafted."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...speculation.trees import CHOICES
from ..decode.products.head import HeadOutput
from ..decode.tiling.tiles import ROW_TILES, Tiles
from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import MAX_ROWS, tl


@dataclass(frozen=True, slots=True)
class DraftChoices:
    """What ``pick_choices`` fills, the likeliest token of each row first."""

    tokens: Tensor
    """int64 [16, 4]: the four best tokens of each row."""
    probabilities: Tensor
    """fp32 [16, 4]: softmax probabilities at temperature 1."""

    @classmethod
    def allocate(cls, device: torch.device) -> DraftChoices:
        tokens = torch.zeros(MAX_ROWS, CHOICES, dtype=torch.int64, device=device)
        return cls(tokens, torch.zeros(MAX_ROWS, CHOICES, device=device))


def reference_choices(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens and probabilities [n, 4] of fp32 logits [n, vocab]; of equal logits the lowest token goes first."""
    best = logits.argsort(dim=-1, descending=True, stable=True)[:, :CHOICES]
    return best, logits.softmax(dim=-1).gather(-1, best)


def pick_choices(out: HeadOutput, choices: DraftChoices, tiles: Tiles) -> None:
    """``pick_rows``, with each row's four best tokens. ``tiles`` are those of ``head_rows``."""
    assert out.logits is not None and out.logits.shape[1] >= CHOICES
    count = out.tile_best.shape[1]
    _pick_choices[(MAX_ROWS,)](
        out.logits, out.tile_best, out.tile_mass, out.token, out.probability, out.peak, choices.tokens,
        choices.probabilities, out.ids,
        VOCAB=out.logits.shape[1], COLUMNS=tiles.columns, CHOICES=CHOICES, TILES=count,
        BLOCK=1 << (count - 1).bit_length(), num_warps=ROW_TILES.warps,
    )  # fmt: skip


@early_kernel
def _pick_choices(
    logits: tl.tensor, tile_best: tl.tensor, tile_mass: tl.tensor, token: tl.tensor, probability: tl.tensor,
    peak: tl.tensor, choice_tokens: tl.tensor, choice_probabilities: tl.tensor,
    ids: tl.tensor,
    VOCAB: tl.constexpr, COLUMNS: tl.constexpr, CHOICES: tl.constexpr, TILES: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """A program for each row. The four tiles with the highest best logits hold the row's four best tokens."""
    wait_for_inputs()
    row = tl.program_id(0)
    tile = tl.arange(0, BLOCK)
    at = row * TILES + tile
    best = tl.load(tile_best + at, mask=tile < TILES, other=float("-inf"))
    mass = tl.load(tile_mass + at, mask=tile < TILES, other=0.0)
    highest = tl.max(best, axis=0)
    total = tl.sum(mass * tl.exp(best - highest), axis=0)
    choice = tl.arange(0, CHOICES)
    tiles = tl.full((CHOICES,), TILES, tl.int32)
    for index in tl.static_range(CHOICES):
        highest_left = tl.max(best, axis=0)
        lowest = tl.where(
            highest_left > float("-inf"), tl.min(tl.where(best == highest_left, tile, TILES), axis=0), TILES
        )
        tiles = tl.where(choice == index, lowest, tiles)
        best = tl.where(tile == lowest, float("-inf"), best)
    candidate = tiles[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    logit = tl.load(logits + row * VOCAB + candidate, mask=candidate < VOCAB, other=float("-inf"))
    let_next_start()
    candidate = tl.reshape(candidate, (CHOICES * COLUMNS,))
    logit = tl.reshape(logit, (CHOICES * COLUMNS,))
    for index in tl.static_range(CHOICES):
        highest_left = tl.max(logit, axis=0)
        winner = tl.minimum(
            tl.min(tl.where(logit == highest_left, candidate, 2147483647), axis=0), VOCAB - 1
        )  # see `head.py`
        token_id = winner.to(tl.int64) if ids is None else tl.load(ids + winner)
        tl.store(choice_tokens + row * CHOICES + index, token_id)
        tl.store(choice_probabilities + row * CHOICES + index, tl.exp(highest_left - highest) * (1.0 / total))
        if index == 0:
            tl.store(token + row, token_id)
        logit = tl.where(candidate == winner, float("-inf"), logit)
    tl.store(probability + row, 1.0 / total)
    tl.store(peak + row, highest)
