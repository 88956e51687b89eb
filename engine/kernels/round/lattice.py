"""How likely each of a position's sixteen candidates is behind each of those of the position before: of these, trees
grow whose drafter scores a token by the one before it. One launch scores all pairs and keeps the four best behind each
candidate. A drafter that scores pairs in its own way gives the scores alone."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ...speculation.trees import CHOICES, Lattice
from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import tl
from .choices import CANDIDATES, Candidates, DraftChoices

PARENTS = 4
"""How many candidates of the position before a program takes."""
CHUNK = 32
"""Channels of one step through a rank."""


class Edges(NamedTuple):
    """The pairs of a block, scored: the definition of what the kernels have."""

    tokens: Tensor
    """int64 [n, 16]: the target's ids of each position's candidates."""
    scores: Tensor
    """fp32 [n, 16, 16]: of each candidate behind each of the position before; behind the anchor all 16 are alike."""
    rest: Tensor | None = None
    """fp32 [n]: the log of what all other tokens' exponentials add up to, behind any token; None for nothing."""

    def chances(self) -> Tensor:
        """fp32 [n, 16, 16]: of each candidate behind each of the position before."""
        scores = self.scores
        if self.rest is not None:
            scores = torch.cat((scores, self.rest[:, None, None].expand(-1, scores.shape[1], 1)), dim=-1)
        return scores.softmax(-1)[..., : self.scores.shape[-1]]

    def lattice(self) -> Lattice:
        """The chances of the four best behind each candidate; of equal scores the first candidate goes first."""
        order = self.scores.argsort(dim=-1, descending=True, stable=True)[..., :CHOICES]
        return Lattice.of(self.chances().gather(-1, order).tolist(), order.tolist())


class Tables(NamedTuple):
    """Of which scores of pairs are sums: a candidate's own logit and ``after[candidate] @ before[token before]``."""

    before: Tensor
    """[vocabulary, rank]: rows by the target's id of the token before."""
    after: Tensor
    """[drafted vocabulary, rank]: rows by the head's number of the candidate."""
    weights: Tensor | None = None
    """[n, rank] or [n, 16, rank]: factors of the channels, by position, or also by the token before."""


def reference_edges(
    candidates: Candidates, tables: Tables, anchor: int, target_ids: Tensor | None, bounded: bool = True
) -> Edges:
    """Scores all pairs behind an ``anchor``. ``target_ids`` int64 [drafted vocabulary]: the target's ids of the head's
    tokens, None where they are the same. ``bounded``: only candidates count; else the others do, too, by their own
    logits."""
    tokens = candidates.tokens if target_ids is None else target_ids[candidates.tokens]
    channels = tables.before[befores(tokens, anchor)].float()
    if tables.weights is not None:
        weights = tables.weights.float()
        channels = channels * (weights[:, None] if weights.ndim == 2 else weights)
    scores = candidates.logits[:, None] + channels @ tables.after[candidates.tokens].float().mT
    return Edges(tokens, scores, None if bounded else candidates.rest)


def befores(tokens: Tensor, anchor: int | Tensor) -> Tensor:
    """[n, 16]: the tokens before each position, of ``tokens`` [n, 16] at each; before the first there is only the
    anchor."""
    return torch.cat((torch.zeros_like(tokens[:1]) + anchor, tokens[:-1]))


def choose_edges(
    candidates: Candidates,
    by: Tables | Tensor,
    block: Tensor,
    choices: DraftChoices,
    target_ids: Tensor | None = None,
    bounded: bool = True,
) -> None:
    """``reference_edges`` behind the token with which ``block`` begins, and the ``lattice`` of these, into ``choices``.
    ``by`` may be the scores of all pairs, fp32 [n, 16, 16]."""
    count = len(candidates.tokens)
    assert choices.order is not None
    scores, (before, after, weights) = (None, by) if isinstance(by, Tables) else (by, (None, None, None))
    strides = (0, 0) if weights is None else (weights.stride(0), weights.stride(1) if weights.ndim == 3 else 0)
    _edges[(count, CANDIDATES // PARENTS)](
        candidates.tokens, candidates.logits, None if bounded else candidates.rest, scores, before, after, weights,
        block, target_ids, choices.tokens, choices.probabilities, choices.order,
        RANK=0 if before is None else before.shape[1], STRIDE=strides[0], BEFORE_STRIDE=strides[1], CHUNK=CHUNK,
        CANDIDATES=CANDIDATES, CHOICES=CHOICES, PARENTS=PARENTS, num_warps=4,
    )  # fmt: skip


@early_kernel
def _edges(
    candidates: tl.tensor, logits: tl.tensor, rest_in: tl.tensor, scores: tl.tensor, before_table: tl.tensor,
    after_table: tl.tensor, weights: tl.tensor, block: tl.tensor, target_ids: tl.tensor, tokens: tl.tensor,
    probabilities: tl.tensor, order: tl.tensor,
    RANK: tl.constexpr, STRIDE: tl.constexpr, BEFORE_STRIDE: tl.constexpr, CHUNK: tl.constexpr,
    CANDIDATES: tl.constexpr, CHOICES: tl.constexpr, PARENTS: tl.constexpr,
) -> None:  # fmt: skip
    """A program for each position and some tokens before it."""
    wait_for_inputs()
    let_next_start()
    position = tl.program_id(0)
    parent = tl.program_id(1) * PARENTS + tl.arange(0, PARENTS)
    candidate = tl.arange(0, CANDIDATES)
    each = tl.load(candidates + position * CANDIDATES + candidate)
    token = each if target_ids is None else tl.load(target_ids + each)
    if scores is not None:
        at = (position * CANDIDATES + parent[:, None]) * CANDIDATES + candidate[None, :]
        score = tl.load(scores + at)
    else:
        before = tl.load(candidates + tl.maximum(position - 1, 0) * CANDIDATES + parent)
        if target_ids is not None:
            before = tl.load(target_ids + before)
        before = tl.where(position == 0, tl.load(block), before)
        score = tl.load(logits + position * CANDIDATES + candidate)[None, :] + tl.zeros((PARENTS, 1), tl.float32)
        for start in range(0, RANK, CHUNK):
            lane = start + tl.arange(0, CHUNK)[None, :]
            channel = tl.load(before_table + before[:, None] * RANK + lane, mask=lane < RANK, other=0.0).to(tl.float32)
            if weights is not None:
                at = position * STRIDE + parent[:, None] * BEFORE_STRIDE + lane
                channel *= tl.load(weights + at, mask=lane < RANK, other=0.0).to(tl.float32)
            after = tl.load(after_table + each[:, None] * RANK + lane, mask=lane < RANK, other=0.0).to(tl.float32)
            score += tl.sum(channel[:, None, :] * after[None, :, :], 2)
    peak = tl.max(score, 1)
    if rest_in is not None:
        peak = tl.maximum(peak, tl.load(rest_in + position))
    total = tl.sum(tl.exp(score - peak[:, None]), 1)
    if rest_in is not None:
        total += tl.exp(tl.load(rest_in + position) - peak)
    list_of = position * CANDIDATES + parent
    packed = tl.zeros((PARENTS,), tl.int32)
    for choice in tl.static_range(CHOICES):
        best = tl.max(score, 1)
        first = tl.min(tl.where(score == best[:, None], candidate[None, :], CANDIDATES), 1)
        first = tl.minimum(first, CANDIDATES - 1)  # where scores are no numbers
        tl.store(probabilities + list_of * CHOICES + choice, tl.exp(best - peak) / total)
        packed |= first << (4 * choice)
        score = tl.where(candidate[None, :] == first[:, None], float("-inf"), score)
    tl.store(order + list_of, packed)
    tl.store(tokens + position * CANDIDATES + candidate, token, mask=tl.program_id(1) + candidate * 0 == 0)


assert CANDIDATES == 16 and CHOICES == 4, "candidates are packed into 16 bits"
