"""Draws the blocks on which a drafter trains: they start at random anchors and have labels, and a mask says which
positions they see."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .masks import Predicate
from .passes import Window
from .rows import TextRows

DECAY = 7.0
"""The length, in positions, over which the loss decays inside a block: an early miss makes everything after it
worthless. A drafter that seldom gets far does better with less."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks drawn for a batch of R rows, A in each: ``anchors`` is [R, A], the other fields have an entry for each
    slot, [R, A * block]."""

    anchors: Tensor
    """Index of each block's anchor within its row."""
    inputs: Tensor
    """The token in each slot: the anchor's, then masks."""
    positions: Tensor
    """Each slot's position within its document."""
    labels: Tensor
    """The token at each slot's own position; no shift."""
    weights: Tensor
    """Loss weights, at most 1; they are 0 for the anchor's slot, beyond the end of the answer, and for blocks without
    an anchor."""


def draw_blocks(
    rows: TextRows, count: int, block: int, mask: int, generator: torch.Generator, decay: float = DECAY
) -> Blocks:
    """Up to ``count`` anchors per row, uniformly without replacement among the places where the model speaks and
    goes on speaking, in their order: neighbours read the same context. ``mask``: the token of the other slots."""
    length = rows.ids.shape[1]
    speaks = rows.supervised
    eligible = torch.zeros_like(speaks)
    eligible[:, :-1] = speaks[:, :-1] & speaks[:, 1:] & (rows.positions[:, 1:] > 0)
    scores = torch.rand(speaks.shape, generator=generator, device=speaks.device).masked_fill(~eligible, -1)
    best, drawn = scores.topk(count, dim=1)
    anchors, order = drawn.sort(dim=1)
    best = best.gather(1, order)

    slots = torch.arange(block, device=speaks.device)
    spots = anchors[..., None] + slots
    inside = spots < length
    spots = spots.clamp_max(length - 1)

    def at(values: Tensor) -> Tensor:
        return values.gather(1, spots.flatten(1)).view(spots.shape)

    ids, documents = at(rows.ids), at(rows.documents)
    belongs = inside & at(speaks) & (documents == documents[..., :1]) & (best >= 0)[..., None]
    weights = belongs.cumprod(-1) * torch.exp(-(slots - 1) / decay) * (slots > 0)
    masked = torch.where(slots == 0, ids, mask)
    positions = at(rows.positions)[..., :1] + slots
    return Blocks(anchors, masked.flatten(1), positions.flatten(1), ids.flatten(1), weights.flatten(1))


def block_visibility(rows: TextRows, blocks: Blocks, block: int, causal: bool, window: Window) -> Predicate:
    """The mask under which a drafter's blocks attend, when they are trained on packed rows. Queries are the slots of
    all blocks of a row; keys are the row's own positions (the context), then the slots again.

    A block sees the context of its document strictly before its anchor, because at inference the anchor's features
    don't exist yet, and its own slots: all of them, or in causal layers those up to the query's."""
    length = rows.ids.shape[1]
    documents, anchors = rows.documents, blocks.anchors

    def visible(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        anchor = anchors[batch, query // block]
        context = key.clamp_max(length - 1)
        seen = (key < anchor) & (documents[batch, context] == documents[batch, anchor])
        own = (key >= length) & ((key - length) // block == query // block)
        if window is not None:
            seen = seen & (anchor + query % block - key < window)
        if causal:
            own = own & ((key - length) % block <= query % block)
        return seen | own

    return visible
