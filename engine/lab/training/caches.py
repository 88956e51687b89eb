"""Key-value caches for batched generation: every text writes at its own positions.

Forgetting rejected tokens costs nothing: they lie at positions that no query sees, until the right tokens overwrite
them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ...layer_config import AttentionConfig
from .passes import Pass, TrainedDraft, Window, attend_grouped, by_text, flat


def round_up(length: int) -> int:
    """The next multiple of 16: fused attention wants aligned masks."""
    return -(-length // 16) * 16


class TextCache:
    """The keys and values of a batch of texts, [kv_heads, texts, length, head_dim] each for every layer."""

    def __init__(
        self, layers: Sequence[AttentionConfig], texts: int, length: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        self.pairs = [
            tuple(
                torch.zeros(each.num_kv_heads, texts, length, each.head_dim, dtype=dtype, device=device)
                for _ in range(2)
            )
            for each in layers
        ]

    def keep(self, texts: Tensor) -> None:
        """Drops all texts but those with these indices, layer by layer, so that no second copy of the whole is made."""
        for index, pair in enumerate(self.pairs):
            self.pairs[index] = tuple(store[:, texts] for store in pair)


class _CachedRows:
    """One layer's rows of a pass: written at their positions, read up to ``limit``."""

    def __init__(self, pair: tuple[Tensor, ...], positions: Tensor, limit: int) -> None:
        self.pair, self.spots, self.limit = pair, positions, limit

    def write(self, start: int, k: Tensor, v: Tensor) -> None:
        texts = len(self.spots)
        for store, rows in zip(self.pair, (k, v), strict=True):
            index = self.spots[None, :, :, None].expand(len(store), -1, -1, store.shape[-1])
            placed = rows.reshape(texts, -1, *rows.shape[1:]).permute(2, 0, 1, 3)
            store.scatter_(2, index, placed.to(store.dtype))

    def extend(self, start: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        self.write(start, k, v)
        keys, values = (store[:, :, : self.limit] for store in self.pair)
        return keys, values

    def first_visible(self, position: int) -> int:
        return 0

    def read(self, first: int, end: int) -> tuple[Tensor, Tensor]:
        keys, values = (store[:, :, : self.limit].flatten(1, 2) for store in self.pair)
        return keys, values


class TargetRows(Pass):
    """Rows of a target at ``positions`` [texts, n], each of which sees every position up to its own."""

    def __init__(self, cache: TextCache, positions: Tensor, end: int) -> None:
        """All positions must lie before ``end``, which is given because reading it from the tensor would make the GPU
        wait."""
        self.rows_positions = positions
        limit = round_up(end)
        self.distance = positions[..., None] - torch.arange(limit, device=positions.device)
        self.visible: dict[Window, Tensor] = {None: self.distance >= 0}
        self.attention = [_CachedRows(pair, positions, limit) for pair in cache.pairs]

    def positions(self, start: int, end: int) -> Tensor:
        return self.rows_positions.flatten()

    def attend(self, q: Tensor, k: Tensor, v: Tensor, causal: bool, window: Window, scale: float) -> Tensor:
        if window not in self.visible:
            assert window is not None
            self.visible[window] = self.visible[None] & (self.distance < window)
        rows = by_text(q, len(self.rows_positions))
        return flat(attend_grouped(rows, k.transpose(0, 1), v.transpose(0, 1), self.visible[window], scale), q)


class DraftRound(TrainedDraft):
    """New context rows [texts, m], which are kept, and one block [texts, n] at each text's anchor, which isn't.

    Context is visible strictly before the anchor: the anchor's own features don't exist when it is drafted from.
    """

    def __init__(self, cache: TextCache, context_positions: Tensor, block_positions: Tensor) -> None:
        super().__init__(context_positions, block_positions)
        device, n = block_positions.device, block_positions.shape[1]
        anchor = block_positions[:, :1, None]
        # Rounded so that context and block together are aligned; what lies beyond the anchors stays invisible.
        limit = round_up(int(anchor.max()))
        self.keys = torch.arange(limit, device=device)
        self.committed = (self.keys < anchor).expand(-1, n, -1)
        self.slots = torch.arange(n, device=device)
        self.visible: dict[tuple[bool, Window], Tensor] = {}
        self.attention = [_CachedRows(pair, context_positions, limit) for pair in cache.pairs]

    def attend(self, q: Tensor, k: Tensor, v: Tensor, causal: bool, window: Window, scale: float) -> Tensor:
        kind = causal, window
        if kind not in self.visible:
            self.visible[kind] = self._visible(*kind)
        rows = by_text(q, len(self.block_positions))
        return flat(attend_grouped(rows, self.joined(k), self.joined(v), self.visible[kind], scale), q)

    def _visible(self, causal: bool, window: Window) -> Tensor:
        committed = self.committed
        if window is not None:
            committed = committed & (self.block_positions[..., None] - self.keys < window)
        own = self.slots[None, :] <= self.slots[:, None] if causal else torch.ones_like(self.slots, dtype=torch.bool)
        return torch.cat((committed, own.expand(len(committed), len(self.slots), -1)), dim=-1)
