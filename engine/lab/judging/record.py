"""Records the draft that stands behind every token of an answer: by these, policies are judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from ...commands import GenerationSettings
from ...decoding.rounds import require_numbers
from ...kv_cache.cache import Cache
from ...models.drafter import Draft, Drafter
from ...models.target import TargetModel
from ...sampling.sampling import sample
from ...speculation.lookup import num_agreed
from .play import RecordedDraft

CHUNK = 256
"""The most rows of one pass over a prompt."""


@torch.inference_mode()
def record_drafts(
    target: TargetModel, drafter: Drafter, prompt: Sequence[int], settings: GenerationSettings
) -> tuple[list[int], list[RecordedDraft]]:
    """Lets the target write an answer token by token, and drafts a whole block behind every one of them. Returns the
    answer, and the draft behind each of its tokens but the last."""
    text: list[int] = []
    drafts: list[tuple[list[int], list[float]]] = []
    for token, drafted in _answer(target, drafter, prompt, settings):
        text.append(token)
        drafts.append((drafted.ids.tolist(), drafted.probabilities.tolist()))
    return text, [_draft(ids, chances, text[start:]) for start, (ids, chances) in enumerate(drafts[:-1], 1)]


def _answer(
    target: TargetModel, drafter: Drafter, prompt: Sequence[int], settings: GenerationSettings
) -> Iterator[tuple[int, Draft]]:
    """Yields each token of the answer, with what is drafted behind it."""
    device, dtype = target.device, target.dtype
    room = len(prompt) + settings.max_new_tokens + drafter.config.block_size
    cache = Cache(target.config.layers, room, CHUNK, target.cache_dtype or dtype, device)
    context = drafter.new_cache(cache, room, CHUNK, dtype, device)
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
        drafted = drafter.draft(target, token, drafter.config.block_size, context)
        require_numbers(drafted.probabilities[:, None].tolist())
        yield token, drafted
        if token in target.config.stop_token_ids:
            return
        rows = [token]


def _draft(ids: list[int], chances: list[float], text: list[int]) -> RecordedDraft:
    return RecordedDraft(tuple(chances[: len(text)]), num_agreed(ids, text))
