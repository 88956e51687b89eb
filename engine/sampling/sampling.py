"""Samples the target, the same at every width, with or without speculation. Every position is sampled with one uniform
number of (seed, position), and a draft is accepted when it *is* that sample: exact rejection sampling for an argmax
drafter, and the same text under every setting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .philox import uniform


def weight_bits(vocab: int) -> int:
    """The exponent of two that the likeliest token of a row weighs, chosen so that no sum over a vocabulary overflows
    int64."""
    return 62 - (vocab - 1).bit_length()


def kept_weights(logits: Tensor, temperature: float, top_k: int = 0, top_p: float = 1.0) -> Tensor:
    """The distribution to sample from, as whole numbers int64 [n, vocab], whose sums don't depend on their order. A
    token weighs exp((logit - highest) / temperature) * 2^``weight_bits``, rounded down. The ``top_k`` largest stay (0:
    all), then the fewest whose share reaches ``top_p``, with equals of the last."""
    scaled = (logits.double() - logits.double().amax(dim=-1, keepdim=True)) / temperature
    weights = (scaled.exp() * 2.0 ** weight_bits(logits.shape[-1])).long()
    if 0 < top_k < logits.shape[-1]:
        weights = weights.masked_fill(logits < logits.topk(top_k, dim=-1).values[:, -1:], 0)
    if top_p < 1:
        ordered, ids = logits.sort(dim=-1, descending=True)
        reached = weights.gather(-1, ids).cumsum(dim=-1)
        wanted = (reached[:, -1:].double() * top_p).ceil().long()
        last = torch.searchsorted(reached, wanted)
        weights = weights.masked_fill(logits < ordered.gather(-1, last), 0)
    return weights


def target_probabilities(logits: Tensor, temperature: float, top_k: int = 0, top_p: float = 1.0) -> Tensor:
    """``kept_weights`` as shares of their sum, fp64 [n, vocab]."""
    weights = kept_weights(logits, temperature, top_k, top_p)
    return weights.double() / weights.sum(dim=-1, keepdim=True)


class Samples(NamedTuple):
    """The target's samples at n positions."""

    ids: list[int]
    probabilities: list[float]
    """The probability of each sampled id, in the distribution it was sampled from; at temperature 0 in the softmax."""
    draft_probabilities: list[float]
    """The probability of each drafted id, in the same distributions; entry i is about draft i, in row i."""


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
    """Samples one token for each row of fp32 logits [n, vocab], whose first position is ``first_position``. Temperature
    0 takes the argmax; otherwise the position's uniform number is looked up in the cumulative weights."""
    if temperature == 0:
        probabilities = logits.softmax(dim=-1)
        ids: list[int] = logits.argmax(dim=-1).tolist()
    else:
        weights = kept_weights(logits, temperature, top_k, top_p)
        probabilities = weights.double() / weights.sum(dim=-1, keepdim=True)
        ids = _look_up(weights, first_position, seed)
    rows = torch.arange(logits.shape[0], device=logits.device)
    asked = torch.tensor([*ids, *draft_ids], device=logits.device)
    given: list[float] = probabilities[torch.cat((rows, rows[: len(draft_ids)])), asked].tolist()
    return Samples(ids, given[: len(ids)], given[len(ids) :])


def _look_up(weights: Tensor, first_position: int, seed: int) -> list[int]:
    """Draws a token for each row of weights [n, vocab]: the one at which the position's uniform number falls in the
    cumulative weights."""
    cumulative = weights.cumsum(dim=-1)
    words = [int(uniform(seed, first_position + row) * 2**32) for row in range(len(cumulative))]
    targets = [word * total >> 32 for word, total in zip(words, cumulative[:, -1].tolist(), strict=True)]
    wanted = torch.tensor(targets, device=cumulative.device)[:, None]
    ids: list[int] = torch.searchsorted(cumulative, wanted, right=True).squeeze(-1).tolist()
    return ids
