"""Sampling the target, the same way at every width and with or without speculation.

The target samples every position itself, from its own distribution, with one uniform number that depends only on
(seed, position). A drafted token is accepted when it *is* that sample. For a drafter that proposes its argmax this is
exact rejection sampling (accept with probability p(draft), else a sample of p without it), and since neither block
size nor verify width enters, the same seed gives the same text under every setting.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_WORD = 0xFFFFFFFF


def uniform(seed: int, position: int) -> float:
    """The random number of one position, in [0, 1): Philox4x32-10 with the seed as key and the position as counter.

    A counter-based generator (Salmon et al. 2011) has no state to advance, so a position's number doesn't depend on
    how the positions before it were reached.
    """
    a, b, c, d = position & _WORD, position >> 32, 0, 0
    key_a, key_b = seed & _WORD, seed >> 32
    for _ in range(_ROUNDS):
        product_a, product_c = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        a, b, c, d = (product_c >> 32) ^ b ^ key_a, product_c & _WORD, (product_a >> 32) ^ d ^ key_b, product_a & _WORD
        key_a, key_b = (key_a + _KEY_STEPS[0]) & _WORD, (key_b + _KEY_STEPS[1]) & _WORD
    return a / 2**32


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


def sample(
    logits: Tensor, first_position: int, *, temperature: float, top_k: int = 0, top_p: float = 1.0, seed: int = 0
) -> list[int]:
    """One token per row of fp32 logits [n, vocab]; row i is the token of position first_position + i.

    Temperature 0 takes the argmax. Otherwise the position's uniform number is looked up in the cumulative
    distribution over the vocabulary.
    """
    if temperature == 0:
        greedy: list[int] = logits.argmax(dim=-1).tolist()
        return greedy
    cumulative = target_probabilities(logits, temperature, top_k, top_p).cumsum(dim=-1)
    numbers = [uniform(seed, first_position + row) for row in range(logits.shape[0])]
    # Scaled by the row's own total, which rounding leaves a hair off one: the number always falls inside the row.
    targets = torch.tensor(numbers, dtype=torch.float64, device=logits.device)[:, None] * cumulative[:, -1:]
    ids: list[int] = torch.searchsorted(cumulative, targets, right=True).squeeze(-1).tolist()
    return ids


def num_accepted(draft: Sequence[int], sampled: Sequence[int]) -> int:
    """How many drafted tokens equal the target's samples before the first that differs."""
    for count, (drafted, wanted) in enumerate(zip(draft, sampled, strict=False)):
        if drafted != wanted:
            return count
    return min(len(draft), len(sampled))
