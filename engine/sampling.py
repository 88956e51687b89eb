"""Sampling the target, the same way at every width and with or without speculation.

The target samples every position itself, from its own distribution, with one uniform number that depends only on
(seed, position). A drafted token is accepted when it *is* that sample. For a drafter that proposes its argmax this is
exact rejection sampling (accept with probability p(draft), else a sample of p without it), and since neither block
size nor verify width enters, the same seed gives the same text under every setting.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .noise import uniform


def target_probabilities(logits: Tensor, temperature: float, top_k: int = 0, top_p: float = 1.0) -> Tensor:
    """The distribution to sample from, fp64 [n, vocab] with rows that sum to one.

    Capped logits / temperature (> 0), then the ``top_k`` largest (0: all), softmax, then the smallest set of tokens,
    largest first, whose probability reaches ``top_p``, renormalised. fp64, so that a cumulative sum over a large
    vocabulary stays monotone and rounding hardly ever moves a sample across a boundary.
    """
    scaled = logits.double() / temperature
    if 0 < top_k < scaled.shape[-1]:
        smallest_kept = scaled.topk(top_k, dim=-1).values[:, -1:]
        scaled = scaled.masked_fill(scaled < smallest_kept, float("-inf"))
    probabilities = scaled.softmax(dim=-1)
    if top_p < 1:
        ordered, ids = probabilities.sort(dim=-1, descending=True, stable=True)
        before = ordered.cumsum(dim=-1) - ordered
        kept = torch.zeros_like(ordered).scatter_(-1, ids, ordered.masked_fill(before >= top_p, 0.0))
        probabilities = kept / kept.sum(dim=-1, keepdim=True)
    return probabilities


class Samples(NamedTuple):
    """What the target says at n positions."""

    ids: list[int]
    probabilities: list[float]
    """Of each id, in the distribution it was sampled from; at temperature 0 in the softmax."""
    draft_probabilities: list[float]
    """Of each drafted id, in the same distribution; row i is about draft i."""


def sample(
    logits: Tensor,
    first_position: int,
    draft_ids: Sequence[int] = (),
    *,
    temperature: float,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
) -> Samples:
    """One token per row of fp32 logits [n, vocab]; row i is the token of position first_position + i.

    Temperature 0 takes the argmax. Otherwise the position's uniform number is looked up in the cumulative
    distribution over the vocabulary.
    """
    if temperature == 0:
        probabilities = logits.softmax(dim=-1)
        ids: list[int] = logits.argmax(dim=-1).tolist()
    else:
        probabilities = target_probabilities(logits, temperature, top_k, top_p)
        ids = _look_up(probabilities, first_position, seed)
    rows = torch.arange(logits.shape[0], device=logits.device)
    asked = torch.tensor([*ids, *draft_ids], device=logits.device)
    given: list[float] = probabilities[torch.cat((rows, rows[: len(draft_ids)])), asked].tolist()
    return Samples(ids, given[: len(ids)], given[len(ids) :])


def _look_up(probabilities: Tensor, first_position: int, seed: int) -> list[int]:
    """The token at which each row's uniform number falls."""
    cumulative = probabilities.cumsum(dim=-1)
    numbers = [uniform(seed, first_position + row) for row in range(len(cumulative))]
    # Scaled by the row's own total, which rounding leaves a hair off one: the number always falls inside the row.
    targets = torch.tensor(numbers, dtype=torch.float64, device=cumulative.device)[:, None] * cumulative[:, -1:]
    ids: list[int] = torch.searchsorted(cumulative, targets, right=True).squeeze(-1).tolist()
    return ids


def num_accepted(draft: Sequence[int], sampled: Sequence[int]) -> int:
    """How many drafted tokens equal the target's samples before the first that differs."""
    for count, (drafted, wanted) in enumerate(zip(draft, sampled, strict=False)):
        if drafted != wanted:
            return count
    return min(len(draft), len(sampled))
