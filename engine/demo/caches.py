"""Key-value caches for batched generation: every sequence writes at its own positions.

Forgetting rejected tokens costs nothing: they lie at positions that no query sees, until the right tokens overwrite
them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .drafter_model import DraftAttend, Pair
from .layers import Attend, attend_grouped
from .shapes import AttentionShape, DrafterShape, LayerKind, TargetShape


def round_up(length: int) -> int:
    """The next multiple of 16: fused attention wants aligned masks."""
    return -(-length // 16) * 16


class LayerCache:
    """Keys and values [B, kv_heads, length, d] of one layer."""

    def __init__(self, heads: AttentionShape, batch: int, length: int, device: torch.device) -> None:
        size = batch, heads.kv_heads, length, heads.head_dim
        self.keys = torch.zeros(size, device=device)
        self.values = torch.zeros(size, device=device)

    def write(self, positions: Tensor, k: Tensor, v: Tensor) -> None:
        """Stores k and v [B, kv_heads, n, d] at ``positions`` [B, n]."""
        index = positions[:, None, :, None].expand_as(k)
        self.keys.scatter_(2, index, k)
        self.values.scatter_(2, index, v)

    def keep(self, sequences: Tensor) -> None:
        """Drops all sequences but these (indices)."""
        self.keys, self.values = self.keys[sequences], self.values[sequences]


class TargetCache:
    def __init__(self, shape: TargetShape, batch: int, length: int, device: torch.device) -> None:
        self.shape = shape
        self.layers = [LayerCache(shape.attention(kind), batch, length, device) for kind in shape.layer_kinds]

    def chunk(self, positions: Tensor) -> TargetChunk:
        """Attention for rows at ``positions`` [B, n]."""
        return TargetChunk(self, positions)


class TargetChunk:
    """Writes a chunk's keys and values, then lets each row see every position up to its own."""

    def __init__(self, cache: TargetCache, positions: Tensor) -> None:
        self.cache = cache
        self.positions = positions
        self.limit = round_up(int(positions.max()) + 1)
        distance = positions[..., None] - torch.arange(self.limit, device=positions.device)
        full = distance >= 0
        self.visible: dict[LayerKind, Tensor] = {
            "full_attention": full,
            "sliding_attention": full & (distance < cache.shape.window),
        }

    def __call__(self, layer: int, kind: LayerKind) -> Attend:
        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            store = self.cache.layers[layer]
            store.write(self.positions, k, v)
            keys, values = store.keys[:, :, : self.limit], store.values[:, :, : self.limit]
            return attend_grouped(q, keys, values, self.visible[kind], scale=1.0)

        return attend


class DrafterCache:
    def __init__(self, shape: DrafterShape, batch: int, length: int, device: torch.device) -> None:
        self.shape = shape
        self.layers = [LayerCache(shape.attention, batch, length, device) for _ in shape.layer_kinds]

    def round(self, context_positions: Tensor, block_positions: Tensor) -> DraftRound:
        """Attention for new context rows [B, m] and one block [B, n] that starts at each sequence's anchor."""
        return DraftRound(self, context_positions, block_positions)


class DraftRound:
    """Keeps the context's keys and values; the block's live for one call.

    Context is visible strictly before the anchor: the anchor's own features don't exist when it is drafted from.
    """

    def __init__(self, cache: DrafterCache, context_positions: Tensor, block_positions: Tensor) -> None:
        self.cache = cache
        self.context_positions = context_positions
        device = block_positions.device
        anchor = block_positions[:, :1, None]
        # Rounded so that context and block together are aligned; what lies beyond the anchors stays invisible.
        self.limit = round_up(int(anchor.max()))
        keys = torch.arange(self.limit, device=device)
        committed = (keys < anchor).expand(-1, block_positions.shape[1], -1)
        near = block_positions[..., None] - keys < cache.shape.window
        slots = torch.arange(block_positions.shape[1], device=device)
        causal = (slots[None, :] <= slots[:, None]).expand(block_positions.shape[0], -1, -1)
        self.visible: dict[LayerKind, Tensor] = {
            "full_attention": torch.cat((committed, torch.ones_like(causal)), dim=-1),
            "sliding_attention": torch.cat((committed & near, causal), dim=-1),
        }

    def __call__(self, layer: int, kind: LayerKind) -> DraftAttend:
        def attend(q: Tensor, context: Pair, block: Pair) -> Tensor:
            store = self.cache.layers[layer]
            store.write(self.context_positions, *context)
            keys = torch.cat((store.keys[:, :, : self.limit], block[0]), dim=2)
            values = torch.cat((store.values[:, :, : self.limit], block[1]), dim=2)
            return attend_grouped(q, keys, values, self.visible[kind], q.shape[-1] ** -0.5)

        return attend
