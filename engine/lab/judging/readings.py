"""Compares how a drafter's config is read with other ways to read it. Taps one layer off, guesses one place off or rows
scaled otherwise cost no text, only tokens a round, and no test of texts finds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import torch

from ...kv_cache.cache import Cache
from ...models.dflash.modules import DFlashDrafter
from ...models.drafter import Drafter
from ...models.target import TargetModel
from ...speculation.lookup import num_agreed

CHUNK = 256
"""The most rows of one pass over a text."""
EVERY = 3
"""A draft is made behind each of so many tokens."""
CLEARLY = 1.2
"""How many times the tokens a block of the config's own reading another must yield, to be said."""


class Reading(NamedTuple):
    """One way to read a drafter's config."""

    words: str
    """What is read otherwise."""
    field: str
    """The field of the config that says so."""
    acceptance_length: float
    """Tokens that a block yields behind the tokens of the target's own greedy texts."""


def better_reading(target: TargetModel, drafter: Drafter, texts: Sequence[tuple[Sequence[int], int]]) -> Reading | None:
    """The reading that yields clearly more tokens a block than the config's own; None where none does, and for drafters
    of other kinds. ``texts``: the target's greedy texts, each with its prompt's length."""
    if not isinstance(drafter, DFlashDrafter):
        return None
    own = _acceptance(target, drafter, texts)
    others = [
        Reading(words, field, _acceptance(target, other, texts)) for words, field, other in _others(target, drafter)
    ]
    best = max(others, key=lambda reading: reading.acceptance_length, default=None)
    return best if best is not None and best.acceptance_length - 1 > CLEARLY * (own - 1) else None


def _others(target: TargetModel, drafter: DFlashDrafter) -> Iterator[tuple[str, str, DFlashDrafter]]:
    """Yields the same weights read otherwise: (words, field, drafter)."""
    config = drafter.config
    for shift, words in ((1, "the outputs of the layers behind"), (-1, "the outputs of the layers before")):
        taps = tuple(tap + shift for tap in config.target_layer_ids)
        if all(0 <= tap < len(target.config.layers) for tap in taps):
            other = copy(drafter)
            other.config = replace(config, target_layer_ids=taps)
            yield f"with {words} those that it names", "target_layer_ids", other
    scale = 1.0 if config.embedding_scale != 1.0 else target.embedding_scale
    if scale != (target.embedding_scale if config.embedding_scale is None else config.embedding_scale):
        other = copy(drafter)
        other.config = replace(config, embedding_scale=scale)
        yield f"with embeddings scaled by {scale:g}", "input_embedding_scale", other
    other = copy(drafter)
    other.config = replace(config, first_slot=0 if config.first_slot else 1)
    row = "a first row that drafts" if config.first_slot else "a first row that drafts nothing"
    yield f"with {row}", "sample_from_anchor", other


@torch.inference_mode()
def _acceptance(target: TargetModel, drafter: DFlashDrafter, texts: Sequence[tuple[Sequence[int], int]]) -> float:
    """Mean tokens of a block behind the tokens of these texts, the target's own included."""
    counts = [count for text, start in texts for count in _right(target, drafter, text, start)]
    return 1 + sum(counts) / max(len(counts), 1)


def _right(target: TargetModel, drafter: DFlashDrafter, text: Sequence[int], start: int) -> Iterator[int]:
    """Yields how many drafts in a row were right behind every few tokens of a text, from ``start`` on."""
    device, dtype, config = target.device, target.dtype, drafter.config
    room = len(text) + config.block_size
    cache = Cache(target.config.layers, room, CHUNK, target.cache_dtype or dtype, device)
    context = drafter.new_cache(cache, room, CHUNK, dtype, device)
    pieces = []
    for first in range(0, len(text), CHUNK):
        ids = torch.tensor(text[first : first + CHUNK], device=device)
        pieces.append(target(ids, first, cache, config.target_layer_ids).features)
        cache.commit(first + len(ids))
    features = torch.cat(pieces)
    for anchor in range(start, len(text) - 1, EVERY):
        while context.length < anchor:
            drafter.ingest(features[context.length : min(context.length + CHUNK, anchor)], context)
        draft = drafter.draft(target, text[anchor], config.block_size, context)
        yield num_agreed(draft.ids.tolist(), text[anchor + 1 :])
