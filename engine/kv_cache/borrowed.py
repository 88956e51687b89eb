"""The cache of a drafter that reads its target's keys and values: it keeps one row of its own."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .cache import Cache
from .layer_cache import LayerCache, RingCache
from .layer_state import CursorState, Restore, StatefulLayer


@dataclass(frozen=True, slots=True)
class LastRow:
    """The layer config of the target's hidden state behind the newest committed row."""

    size: int

    def new_state(self, max_context: int, slack: int, dtype: torch.dtype, device: torch.device) -> LastRowState:
        return LastRowState(torch.zeros(1, self.size, dtype=dtype, device=device))


class LastRowState(CursorState):
    """Holds the target's hidden state behind the newest committed row. After going back it is stale, which harms
    nobody: at least one row of a prompt is always run anew."""

    def __init__(self, row: torch.Tensor):
        self.row = row
        """[1, hidden]: the hidden state; all zeros before the first row."""

    @property
    def nbytes(self) -> int:
        return self.row.nbytes

    def can_rewind_to(self, length: int, written: int) -> bool:
        return True

    def snapshot(self, length: int) -> Restore:
        return self.clear


class BorrowedCache(Cache):
    """A cache whose attention reads what the target's last layer of each kind holds."""

    def __init__(
        self, target: Cache, row: StatefulLayer, max_context: int, slack: int, dtype: torch.dtype, device: torch.device
    ):
        super().__init__((row,), max_context, slack, dtype, device)
        self._target = target

    @property
    def row(self) -> torch.Tensor:
        """The target's hidden state behind the newest committed row, [1, hidden]."""
        state = self.layers[0]
        assert isinstance(state, LastRowState)
        return state.row

    def lent(self, window: int | None) -> LayerCache:
        """The target's keys and values that a drafter's layer with this window (None for full attention) reads."""
        return next(each for each in reversed(self._target.attention) if isinstance(each, RingCache) == bool(window))
