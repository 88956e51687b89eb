"""Where two answers part, and how nearly the target could have gone either way there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.kv_cache.cache import Cache
from engine.models.target import TargetModel

BF16_STEPS = 4
"""Two logits may change places when they are at most this many bf16 roundings apart."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first position where two answers part, and how far apart the two best logits are there."""

    position: int
    margin: float
    allowed: float

    def __str__(self) -> str:
        return f"answers part at token {self.position}: top-2 margin {self.margin:.4f}, allowed {self.allowed:.4f}"


def allowed_margin(logits: Tensor, dtype: torch.dtype) -> Tensor:
    """What rounding may move between each of these logits and another near it."""
    return BF16_STEPS * logits.abs().clamp(min=1.0) * torch.finfo(dtype).eps


@torch.inference_mode()
def first_divergence(
    target: TargetModel, prompt: Sequence[int], plain: Sequence[int], other: Sequence[int]
) -> Divergence | None:
    """None when the answers are the same. The margin is measured on the plain path, one pass over the text so far."""
    position = next((i for i, (a, b) in enumerate(zip(plain, other, strict=True)) if a != b), None)
    if position is None:
        return None
    weight = target.embed_tokens.weight
    ids = torch.tensor([*prompt, *plain[:position]], device=weight.device)
    cache = Cache(target.config.layers, len(ids), len(ids), weight.dtype, weight.device)
    best = target.logits(target(ids, 0, cache).hidden[-1:]).topk(2).values[0]
    return Divergence(position, float(best[0] - best[1]), float(allowed_margin(best[0], weight.dtype)))
