"""Picks the drafter's best tokens for each position: its four choices where trees are drafted, or sixteen candidates,
of which a selector or a Markov head makes choices (``lattice``)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...speculation.trees import CHOICES
from ..decode.products.head import HeadOutput
from ..decode.tiling.tiles import ROW_TILES, Tiles
from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import MAX_ROWS, power_of_two, tl

CANDIDATES = 16
"""How many tokens of a position are scored behind those of the one before."""


@dataclass(frozen=True, slots=True)
class DraftChoices:
    """The choices of which a tree is grown, the likeliest of each position first: as they are behind any token
    (``pick_choices``), or behind each of sixteen candidates of the position before (``lattice``)."""

    tokens: Tensor
    """int64 [16, 4]: the four best tokens of each row; or its candidates, [16, 16]."""
    probabilities: Tensor
    """fp32 [16, 4]: softmax probabilities at temperature 1; or [16, 16, 4], behind each candidate."""
    first_tokens: Tensor
    first_probabilities: Tensor
    """int64 and fp32 [16]: the chain of first choices; where these depend on the token before, ``grow_tree`` finds
    it."""
    order: Tensor | None = None
    """int32 [16, 16]: behind each candidate, which of its position's candidates the four choices are, 4 bits each, the
    first lowest; None where choices don't depend on the token before."""

    @classmethod
    def allocate(cls, device: torch.device, conditioned: bool = False) -> DraftChoices:
        def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(MAX_ROWS, *shape, dtype=dtype, device=device)

        if not conditioned:
            tokens, probabilities = zeros(CHOICES, dtype=torch.int64), zeros(CHOICES)
            return cls(tokens, probabilities, tokens[:, 0], probabilities[:, 0])
        tokens, order = zeros(CANDIDATES, dtype=torch.int64), zeros(CANDIDATES, dtype=torch.int32)
        return cls(tokens, zeros(CANDIDATES, CHOICES), zeros(dtype=torch.int64), zeros(), order)


@dataclass(frozen=True, slots=True)
class Candidates:
    """What ``pick_candidates`` fills for the first n rows, the likeliest of each first."""

    tokens: Tensor
    """int64 [n, 16]: tokens as the head numbers them."""
    logits: Tensor
    """fp32 [n, 16]"""
    rest: Tensor | None
    """fp32 [n]: the log of what the exponentials of all other tokens' logits add up to; None where nobody asks."""

    @classmethod
    def allocate(cls, count: int, device: torch.device, rest: bool = False) -> Candidates:
        logits = torch.zeros(count, CANDIDATES, device=device)
        others = torch.zeros(count, device=device) if rest else None
        return cls(torch.zeros_like(logits, dtype=torch.int64), logits, others)


def reference_candidates(logits: Tensor, rest: bool = False, tokens: Tensor | None = None) -> Candidates:
    """Those of fp32 logits [n, vocab], perhaps with the ``rest``; of equal logits the lowest token goes first, which
    ``topk`` doesn't promise. ``tokens`` int64 [n, 16] are taken as they are, whichever are the likeliest."""
    tokens = _likeliest(logits) if tokens is None else tokens
    rest_of = logits.scatter(-1, tokens, float("-inf")).logsumexp(-1) if rest else None
    return Candidates(tokens, logits.gather(-1, tokens), rest_of)


def _likeliest(logits: Tensor) -> Tensor:
    count = min(CANDIDATES, logits.shape[-1])
    values, tokens = logits.topk(min(count + 1, logits.shape[-1]))
    tokens = tokens[:, :count].clone()
    for row in (values[:, 1:] == values[:, :-1]).any(-1).nonzero()[:, 0].tolist():
        near = (~(logits[row] < values[row, count - 1])).nonzero()[:, 0]
        tokens[row] = near[logits[row, near].argsort(descending=True, stable=True)[:count]]
    return tokens


def reference_choices(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens and probabilities [n, 4] of fp32 logits [n, vocab]; of equal logits the lowest token goes first."""
    best = logits.argsort(dim=-1, descending=True, stable=True)[:, :CHOICES]
    return best, logits.softmax(dim=-1).gather(-1, best)


def pick_choices(out: HeadOutput, choices: DraftChoices, tiles: Tiles) -> None:
    """``pick_rows``, with each row's four best tokens. ``tiles`` are those of ``head_rows``."""
    _launch(out, choices.tokens, choices.probabilities, tiles, firsts=(out.token, out.probability, out.peak))


def pick_candidates(out: HeadOutput, candidates: Candidates, tiles: Tiles) -> None:
    """``reference_candidates`` of the first rows. ``tiles`` are those of ``head_rows``."""
    _launch(out, candidates.tokens, candidates.logits, tiles, rest=candidates.rest)


def _launch(
    out: HeadOutput,
    tokens: Tensor,
    numbers: Tensor,
    tiles: Tiles,
    firsts: tuple[Tensor, Tensor, Tensor] | None = None,
    rest: Tensor | None = None,
) -> None:
    """``tokens`` and ``numbers`` [rows, choices]: ids and probabilities, with the ``firsts``' as ``HeadOutput`` has
    them; without, the head's numbers and logits."""
    (rows, count), num_tiles = tokens.shape, out.tile_best.shape[1]
    assert out.logits is not None and out.logits.shape[1] >= count
    _pick_choices[(rows,)](
        out.logits, out.tile_best, out.tile_mass, *(firsts or (None, None, None)), tokens, numbers, rest,
        None if firsts is None else out.ids,
        VOCAB=out.logits.shape[1], COLUMNS=tiles.columns, CHOICES=count, TILES=num_tiles,
        BLOCK=power_of_two(num_tiles), num_warps=ROW_TILES.warps,
    )  # fmt: skip


@early_kernel
def _pick_choices(
    logits: tl.tensor, tile_best: tl.tensor, tile_mass: tl.tensor, token: tl.tensor, probability: tl.tensor,
    peak: tl.tensor, choice_tokens: tl.tensor, choice_numbers: tl.tensor, rest_out: tl.tensor, ids: tl.tensor,
    VOCAB: tl.constexpr, COLUMNS: tl.constexpr, CHOICES: tl.constexpr, TILES: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """A program for each row. The four tiles with the highest best logits hold the row's four best tokens; and so with
    sixteen, of which the logits are kept, and perhaps what all others have together."""
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
    mass = total * 0
    for index in tl.static_range(CHOICES):
        highest_left = tl.max(logit, axis=0)
        winner = tl.minimum(
            tl.min(tl.where(logit == highest_left, candidate, 2147483647), axis=0), VOCAB - 1
        )  # see `head.py`
        token_id = winner.to(tl.int64) if ids is None else tl.load(ids + winner)
        tl.store(choice_tokens + row * CHOICES + index, token_id)
        mass += tl.exp(highest_left - highest)
        if token is not None:
            chance = tl.exp(highest_left - highest) * (1.0 / total)
            tl.store(choice_numbers + row * CHOICES + index, chance)
            if index == 0:
                tl.store(token + row, token_id)
        else:
            tl.store(choice_numbers + row * CHOICES + index, highest_left)
        logit = tl.where(candidate == winner, float("-inf"), logit)
    if token is not None:
        tl.store(probability + row, 1.0 / total)
        tl.store(peak + row, highest)
    if rest_out is not None:
        left = total - mass
        tl.store(rest_out + row, tl.where(left > 0, tl.log(tl.where(left > 0, left, 1.0)) + highest, float("-inf")))
