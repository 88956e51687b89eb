"""What a drafter's definition says of a draft that a device made: of each token behind the draft's own tokens before
it, so that one rounding isn't paid for by all that follow.

Scores are those of the host in fp32. What was taken may lack as much of the best as ``ROUNDINGS`` times what the same
host loses by rounding to the device's dtype, at that position: a measure that no fault of the device can widen.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import NamedTuple
from unittest.mock import patch

import torch
from torch import Tensor

from engine.kernels.round.choices import CANDIDATES, DraftChoices
from engine.kernels.round.lattice import Edges
from engine.kernels.round.markov import reference_channels
from engine.kernels.weights.int8 import Int8Weight
from engine.kernels.weights.plain import PlainWeight
from engine.kv_cache.cache import Cache
from engine.models.dflash.markov import MarkovPicker
from engine.models.dflash.modules import DFlashDrafter
from engine.models.drafter import Drafter
from engine.models.packed import hold
from engine.models.target import TargetModel
from engine.speculation.trees import CHOICES

ROUNDINGS = 8.0
"""Root mean square errors of a score. Two scores' difference has errors half as large again; some thousand are
compared."""
FLOOR = 1e-5
"""The error, relative to the largest score, where the device has fp32 as well: sums have another order."""
LEAST = 1e-30
"""Probabilities below are alike."""
READ_IN_8_BITS = (".self_attn.", ".mlp.")


@dataclass(frozen=True, slots=True)
class Host:
    """A drafter and its target's tables in one dtype, behind the same committed rows as the device."""

    drafter: Drafter
    target: TargetModel
    cache: Cache

    def edges(self, anchor: int, candidates: Tensor) -> tuple[Tensor, Edges]:
        """Logits [n, vocabulary of its head], and the pairs of these candidates."""
        assert isinstance(self.drafter, DFlashDrafter)
        return self.drafter.edges(self.target, anchor, len(candidates) + 1, self.cache, candidates)

    def scores(self, anchor: int, tokens: list[int]) -> Tensor:
        """fp32 [n, vocabulary of its head]: of all tokens at each position, behind those of a draft."""
        drafter, count = self.drafter, len(tokens) + 1
        if drafter.sequential:
            forced = iter([torch.tensor([token], device=self.target.device) for token in tokens])
            with patch.object(drafter, "tokens", lambda _: next(forced)):
                return drafter.probabilities(self.target, anchor, count, self.cache).log()
        assert isinstance(drafter, DFlashDrafter)
        rows = drafter.rows(self.target, anchor, count, self.cache)
        logits, picker = drafter.logits(self.target, rows), drafter.picker
        if isinstance(picker, MarkovPicker):
            weights, befores = picker.weights(), [anchor, *tokens[:-1]]
            says = [reference_channels(weights, row, before) for row, before in zip(rows, befores, strict=True)]
            logits = logits + (torch.stack(says).to(weights.after.dtype) @ weights.after.mT).float()
        return logits


def host_of(drafter: Drafter, target: TargetModel, in_8_bits: bool, dtype: torch.dtype, cache: Cache) -> Host:
    """Copies in a dtype, of the weights as a device reads them; ``cache`` is to be filled."""
    own, tables = deepcopy(drafter).to(dtype), deepcopy(target).to(dtype)
    if in_8_bits:
        for name, parameter in list(drafter.products()):
            if name == "fc.weight" or any(part in name for part in READ_IN_8_BITS):
                hold(own, name, PlainWeight(Int8Weight.of(parameter.detach()).restored().to(dtype)))
        head = PlainWeight(drafter.head_in_8_bits(target).restored().to(dtype))
        if drafter.config.tables.head:
            hold(own, "lm_head.weight", head)
        else:
            tables.packed_head = head
    own.requires_grad_(False).eval()
    return Host(own, tables, cache)


class Verdict(NamedTuple):
    """What was taken at each position, beside the best."""

    what: str
    gap: Tensor
    """fp32 [n]: how much less the score is of what was taken."""
    error: Tensor
    """fp32 [n]: the root mean square of what scores lose by rounding there."""

    @property
    def holds(self) -> bool:
        return bool((self.gap <= ROUNDINGS * self.error).all())

    def __str__(self) -> str:
        others = [
            f"{place}: {gap:.2g}, error {error:.2g}{'' if gap <= ROUNDINGS * error else ' NOT BY ROUNDING'}"
            for place, (gap, error) in enumerate(zip(self.gap.tolist(), self.error.tolist(), strict=True))
            if not gap <= FLOOR
        ]
        same = len(self.gap) - len(others)
        return f"{same} of {len(self.gap)} as the host" + "".join(f"; position {each}" for each in others)


@torch.inference_mode()
def verdicts(
    exact: Host, rounded: Host, anchor: int, tokens: list[int], choices: DraftChoices | None
) -> Iterator[Verdict]:
    """Of a drafted chain, and of the ``choices`` of which a tree would be grown."""
    count, ids = len(tokens), exact.drafter.token_ids
    taken = torch.tensor(tokens, device=exact.target.device)
    if choices is not None:
        said = choices.tokens[:count]
        candidates = said if ids is None else torch.searchsorted(ids, said)
        (logits, pairs), (rounded_logits, rounded_pairs) = (host.edges(anchor, candidates) for host in (exact, rounded))
        scores, rounded_scores = pairs.scores, rounded_pairs.scores
        chosen = logits.gather(1, candidates)
        least = logits.topk(CANDIDATES).values[:, -1]
        gap = (least - chosen.min(1).values).clamp(min=0)
        twice = (candidates.sort(1).values.diff(dim=1) == 0).any(1)
        error = _error(rounded_logits.gather(1, candidates), chosen)
        yield Verdict("candidates", gap.masked_fill(twice, torch.inf), error)
        yield _tree(pairs, _error(rounded_scores.flatten(1), scores.flatten(1)), choices)
    if choices is None or isinstance(getattr(exact.drafter, "picker", None), MarkovPicker):
        of_all, of_rounded = (host.scores(anchor, tokens) for host in (exact, rounded))
        places = taken if ids is None else torch.searchsorted(ids, taken)
        yield Verdict("tokens", _lack(of_all, places), _error(of_rounded, of_all))
        return
    found = said == taken[:, None]
    places, here = found.int().argmax(1), torch.arange(count, device=taken.device)
    before = torch.cat((places[:1] * 0, places[:-1]))
    row, rounded_row = scores[here, before], rounded_scores[here, before]
    yield Verdict("tokens", _lack(row, places).masked_fill(~found.any(1), torch.inf), _error(rounded_row, row))


def _tree(pairs: Edges, error: Tensor, choices: DraftChoices) -> Verdict:
    """Of the four choices behind each candidate, and of their probabilities, whose logarithms lose twice as much."""
    assert choices.order is not None
    scores, count = pairs.scores, len(pairs.scores)
    order = ((choices.order[:count, :, None] >> (4 * torch.arange(CHOICES, device=scores.device))) & 15).long()
    twice = (order.sort(-1).values.diff(dim=-1) == 0).any(-1).any(-1)
    best = scores.sort(-1, descending=True).values[..., :CHOICES]
    said, chances = (each.clamp(min=LEAST).log() for each in (choices.probabilities[:count], pairs.chances()))
    apart = torch.stack((best - scores.gather(-1, order), (said - chances.gather(-1, order)) / 2)).abs()
    return Verdict("choices", apart.amax((0, 2, 3)).masked_fill(twice, torch.inf), error)


def _lack(scores: Tensor, places: Tensor) -> Tensor:
    return scores.max(1).values - scores.gather(1, places[:, None])[:, 0]


def _error(rounded: Tensor, exact: Tensor) -> Tensor:
    lost = (rounded - exact).square().mean(1).sqrt()
    return lost.maximum(FLOOR * exact.abs().amax(1))
