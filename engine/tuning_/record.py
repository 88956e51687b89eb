"""What every policy would have made of a text: drafts recorded at every position, then played back in no time.

A policy changes which positions a round starts at, never the text. So one recording, with a draft from every
position, tells exactly what each policy would have accepted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from .cache import Cache
from .commands import GenerationSettings
from .models.dflash import DFlashDrafter
from .models.gemma4 import Gemma4
from .sampling import sample
from .width import CostTable, Policy

CHUNK = 256


class Anchor(NamedTuple):
    """A position of a text, and the draft that starts there."""

    confidences: tuple[float, ...]
    """What the drafter gave each of its tokens, as far as the text goes."""
    num_right: int
    """How many of these the target says too, before the first that it doesn't."""


@torch.inference_mode()
def record_drafts(
    target: Gemma4, drafter: DFlashDrafter, prompt: Sequence[int], settings: GenerationSettings
) -> list[Anchor]:
    """Lets the target write an answer token by token, and drafts a whole block at every one of them."""
    anchors = list(_drafted_answer(target, drafter, prompt, settings))
    text = [token for token, _, _ in anchors]
    return [
        Anchor(confidences[: len(text) - index - 1], _common_length(draft, text[index + 1 :]))
        for index, (_, draft, confidences) in enumerate(anchors)
        if index + 1 < len(text)
    ]


def _drafted_answer(
    target: Gemma4, drafter: DFlashDrafter, prompt: Sequence[int], settings: GenerationSettings
) -> Iterator[tuple[int, list[int], tuple[float, ...]]]:
    """Each token of the answer, with the draft behind it and its confidences."""
    device, dtype = target.embed_tokens.weight.device, target.embed_tokens.weight.dtype
    room = len(prompt) + settings.max_new_tokens + drafter.config.block_size
    cache = Cache(target.config.layers, room, CHUNK, dtype, device)
    context = Cache(drafter.config.layers, room, CHUNK, dtype, device)
    rows = list(prompt)
    for count in range(settings.max_new_tokens):
        hidden: Tensor | None = None
        for start in range(0, len(rows), CHUNK):
            ids = torch.tensor(rows[start : start + CHUNK], device=device)
            output = target(ids, cache.length, cache, drafter.config.target_layer_ids)
            cache.commit(cache.length + len(ids))
            drafter.ingest(output.features, context)
            hidden = output.hidden[-1:]
        assert hidden is not None, "the prompt is empty"
        token = sample(
            target.logits(hidden),
            len(prompt) + count,
            temperature=settings.temperature,
            top_k=settings.top_k,
            top_p=settings.top_p,
            seed=settings.seed,
        ).ids[0]
        draft = drafter.draft(target, token, drafter.config.block_size, context)
        yield token, draft.ids.tolist(), tuple(draft.probabilities.tolist())
        if token in target.config.stop_token_ids:
            return
        rows = [token]


def _common_length(draft: Sequence[int], text: Sequence[int]) -> int:
    return next((i for i, (a, b) in enumerate(zip(draft, text, strict=False)) if a != b), min(len(draft), len(text)))


@dataclass(frozen=True, slots=True)
class Played:
    """What a policy made of a recording."""

    tokens: int
    rounds: int
    milliseconds: float

    @property
    def tok_s(self) -> float:
        return 1e3 * self.tokens / self.milliseconds


def play(policy: Policy, anchors: Sequence[Anchor], table: CostTable, prompt_length: int = 0) -> Played:
    """Runs a policy over a recording, from the first token to the last, at the costs of ``table``."""
    position, rounds, milliseconds = 0, 0, 0.0
    while position < len(anchors):
        anchor, context = anchors[position], prompt_length + position
        costs = table.at(context)
        if policy.wants_draft(context):
            width = policy.choose(anchor.confidences, context).num_verified
            accepted = min(anchor.num_right, width)
            milliseconds += costs.round(width)
            policy.observe(anchor.confidences, width, accepted, context)
            position += accepted + 1
        else:
            milliseconds += costs.plain
            policy.observe((), 0, 0, context)
            position += 1
        rounds += 1
    return Played(min(position, len(anchors)), rounds, milliseconds)
