"""Compares how a drafter's config is read with other ways to read it. Taps one layer off, guesses one place off or rows
scaled otherwise cost no text, only tokens a round, and no test of texts finds them. The self-test counts whole blocks;
a chat looks at first guesses, of its first long text and while nobody waits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..kv_cache.cache import Cache
from ..models.dflash.modules import DFlashDrafter
from ..models.drafter import Drafter
from ..models.eagle3.modules import Eagle3
from ..models.family import EMBEDDED
from ..models.target import TargetModel, TargetOutput
from ..speculation.lookup import num_agreed

Read = DFlashDrafter | Eagle3
"""Drafters whose configs can be read in several ways."""
CHUNK = 256
"""The most rows of one pass over a text."""
DEEP = 4
"""Guesses of a draft that the self-test looks at, where each takes a pass."""
EVERY = 3
"""A draft is made behind each of so many tokens."""
CLEARLY = 1.2
"""How many times the tokens a block of the config's own reading another must yield, to be target_ids."""


FEWEST, PLACES = 96, 32
"""Tokens of a text that is long enough to look at, and places at which is drafted then."""
LONGEST = 512
"""Tokens of it that are run, at most: its last ones."""
SIGMAS = 3.0
"""By how many standard deviations places must speak for another reading, of those where the two differ."""


class FirstGuesses(NamedTuple):
    """Another way to read a drafter's config, by which more first guesses are the target's own next token."""

    words: str
    field: str
    own: float
    """The share of places where they are so by the config's own reading."""
    share: float
    """The same by the other."""

    @property
    def says(self) -> str:
        return (
            f"The drafter's first guess is the target's own token in {self.own:.0%} of places; {self.words} it would be"
            f" in {self.share:.0%}. Its config ({self.field}) says otherwise than it was trained."
        )


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
    if not isinstance(drafter, DFlashDrafter | Eagle3):
        return None
    own = _acceptance(target, drafter, texts)
    others = [
        Reading(words, field, _acceptance(target, other, texts)) for words, field, other in _others(target, drafter)
    ]
    best = max(others, key=lambda reading: reading.acceptance_length, default=None)
    return best if best is not None and best.acceptance_length - 1 > CLEARLY * (own - 1) else None


def _others(target: TargetModel, drafter: Read) -> Iterator[tuple[str, str, Read]]:
    """Yields the same weights read otherwise: (words, field, drafter)."""
    for shift, words in ((1, "the outputs of the layers behind"), (-1, "the outputs of the layers before")):
        taps = tuple(tap if tap == EMBEDDED else tap + shift for tap in drafter.config.target_layer_ids)
        if all(tap == EMBEDDED or 0 <= tap < len(target.config.layers) for tap in taps):
            yield f"with {words} those that it names", "target_layer_ids", _read(drafter, target_layer_ids=taps)
    if isinstance(drafter, Eagle3):
        normed = drafter.config.residual_normed
        words = f"with what stands before its layer {'as it is' if normed else 'normed'}"
        yield words, "norm_before_residual", _read(drafter, residual_normed=not normed)
        return
    config = drafter.config
    scale = 1.0 if config.embedding_scale != 1.0 else target.embedding_scale
    if scale != (target.embedding_scale if config.embedding_scale is None else config.embedding_scale):
        words = f"with embeddings scaled by {scale:g}"
        yield words, "input_embedding_scale", _read(drafter, embedding_scale=scale)
    if config.method == "dspine":  # whose first row hears nothing
        return
    row = "a first row that drafts" if config.first_slot else "a first row that drafts nothing"
    yield f"with {row}", "sample_from_anchor", _read(drafter, first_slot=0 if config.first_slot else 1)


def _read(drafter: Read, **fields: Any) -> Read:
    """The same weights by a config that says otherwise."""
    other = copy(drafter)
    other.config = replace(drafter.config, **fields)
    return other


@torch.inference_mode()
def _acceptance(target: TargetModel, drafter: Read, texts: Sequence[tuple[Sequence[int], int]]) -> float:
    """Mean tokens of a block behind the tokens of these texts, the target's own included."""
    counts = [count for text, start in texts for count in _right(target, drafter, text, start)]
    return 1 + sum(counts) / max(len(counts), 1)


def _right(target: TargetModel, drafter: Read, text: Sequence[int], start: int) -> Iterator[int]:
    """Yields how many drafts in a row were right behind every few tokens of a text, from ``start`` on."""
    cache = _new_cache(target, drafter, text)
    features = _features(list(_outputs(target, text, cache, drafter.config.target_layer_ids, CHUNK)))
    anchors = range(start, len(text) - 1, EVERY)
    for anchor, draft in zip(anchors, _drafts(target, drafter, text, features, cache, anchors, DEEP), strict=True):
        yield num_agreed(draft, text[anchor + 1 :])


def _new_cache(target: TargetModel, drafter: Read, text: Sequence[int]) -> Cache:
    room = len(text) + drafter.config.block_size
    return Cache(target.config.layers, room, CHUNK, target.cache_dtype or target.dtype, target.device)


def _outputs(
    target: TargetModel, text: Sequence[int], cache: Cache, taps: Sequence[int], rows: int
) -> Iterator[TargetOutput]:
    """Yields the target's outputs for a text, in pieces of ``rows``."""
    for index in range(0, len(text), rows):
        ids = torch.tensor(text[index : index + rows], device=target.device)
        yield target(ids, index, cache, taps)
        cache.commit(index + len(ids))


def _features(outputs: Sequence[TargetOutput]) -> Tensor:
    return torch.cat([each.features for each in outputs if each.features is not None])


def _drafts(
    target: TargetModel,
    drafter: Read,
    text: Sequence[int],
    features: Tensor,
    cache: Cache,
    anchors: Sequence[int],
    guesses: int,
) -> Iterator[list[int]]:
    """Yields the tokens drafted behind each of these places of a text: whole blocks, or so many where each takes a
    pass."""
    room = len(text) + drafter.config.block_size
    context = drafter.new_cache(cache, room, CHUNK, target.dtype, target.device)
    tokens = 1 + guesses if drafter.sequential else drafter.config.block_size
    for anchor in anchors:
        while context.length < anchor:
            drafter.ingest(features[context.length : min(context.length + CHUNK, anchor)], context)
        yield drafter.draft(target, text[anchor], tokens, context).ids.tolist()


@torch.inference_mode()
def look_at_guesses(
    target: TargetModel, drafter: Drafter, text: Sequence[int], rows: int = CHUNK
) -> Iterator[FirstGuesses | None]:
    """Compares the first guesses of a text's drafts, by each reading, with what the target says next itself. Yields
    None between pieces of work, of at most ``rows`` rows of the target, and last the reading that is clearly better,
    if any."""
    if not isinstance(drafter, DFlashDrafter | Eagle3) or len(text) < FEWEST:
        return
    text = text[-LONGEST:]
    anchors = range(FEWEST // 2, len(text) - 1, max((len(text) - FEWEST // 2) // PLACES, 1))
    cache, features, own, target_ids = (
        _new_cache(target, drafter, text),
        dict[tuple[int, ...], Tensor](),
        list[bool](),
        list[int](),
    )
    best: FirstGuesses | None = None
    for words, field, other in [("", "", drafter), *_others(target, drafter)]:
        taps = other.config.target_layer_ids
        if taps not in features:
            outputs, cache = list[TargetOutput](), _new_cache(target, drafter, text)
            for output in _outputs(target, text, cache, taps, rows):
                outputs.append(output)
                yield None
            features[taps] = _features(outputs)
            if not target_ids:
                hidden = torch.cat([each.hidden for each in outputs])[torch.tensor(anchors, device=target.device)]
                target_ids = target.logits(hidden).argmax(dim=-1).tolist()
        right = []
        for draft, token in zip(
            _drafts(target, other, text, features[taps], cache, anchors, 1), target_ids, strict=True
        ):
            right.append(draft[0] == token)
            yield None
        own = own or right
        won = sum(theirs > ours for ours, theirs in zip(own, right, strict=True))
        lost = sum(theirs < ours for ours, theirs in zip(own, right, strict=True))
        if won - lost > SIGMAS * (won + lost) ** 0.5 and (best is None or sum(right) > best.share * len(right)):
            best = FirstGuesses(words, field, sum(own) / len(own), sum(right) / len(right))
    yield best
