"""An attention layer's state: keys and values by position. Rows are written past the cursor; accepting moves the cursor
over them, refused ones are overwritten. Nothing is copied."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from .layer_state import CursorState, Restore


class LayerCache(CursorState):
    """Keys and values of one layer, [kv_heads, capacity, head_dim] each; position p lies in row p % capacity."""

    def __init__(self, kv_heads: int, capacity: int, head_dim: int, dtype: torch.dtype, device: torch.device):
        # Not zeros_like: that of the meta device, where plans are made, takes seconds to import.
        shape = kv_heads, capacity, head_dim
        self.k = torch.zeros(shape, dtype=dtype, device=device)
        self.v = torch.zeros(shape, dtype=dtype, device=device)

    @property
    def capacity(self) -> int:
        return self.k.shape[1]

    @abstractmethod
    def first_visible(self, position: int) -> int:
        """The oldest position that a query at ``position`` sees."""

    def write(self, start: int, k: Tensor, v: Tensor) -> None:
        """Stores rows [n, kv_heads, head_dim] of positions start .. start + n - 1; a ring keeps the last that fit."""
        count, first = k.shape[0], start % self.capacity
        if first + count <= self.capacity:
            self.k.narrow(1, first, count).copy_(k.transpose(0, 1))
            self.v.narrow(1, first, count).copy_(v.transpose(0, 1))
            return
        skipped = max(0, count - self.capacity)
        start, k, v = start + skipped, k[skipped:], v[skipped:]
        count = k.shape[0]
        first = start % self.capacity
        head = min(count, self.capacity - first)
        for store, rows in ((self.k, k.transpose(0, 1)), (self.v, v.transpose(0, 1))):
            store[:, first : first + head] = rows[:, :head]
            store[:, : count - head] = rows[:, head:]

    def extend(self, start: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Stores rows as ``write`` does; returns the keys and values that they see, from first_visible(start) on, even
        if a ring is too small for them."""
        first, end = self.first_visible(start), start + k.shape[0]
        if end - first <= self.capacity:
            self.write(start, k, v)
            return self.read(first, end)
        before = self.read(first, start)
        seen_k, seen_v = (torch.cat((old, new.transpose(0, 1)), 1) for old, new in zip(before, (k, v), strict=True))
        self.write(start, k, v)
        return seen_k, seen_v

    def read(self, first: int, end: int) -> tuple[Tensor, Tensor]:
        """Keys and values of positions first .. end - 1, in order, [kv_heads, end - first, head_dim]."""
        assert end - first <= self.capacity, "the ring no longer holds these positions"
        if first == end:
            return self.k[:, :0], self.v[:, :0]
        low, high = first % self.capacity, (end - 1) % self.capacity + 1
        if low < high:
            return self.k[:, low:high], self.v[:, low:high]
        k = torch.cat((self.k[:, low:], self.k[:, :high]), dim=1)
        return k, torch.cat((self.v[:, low:], self.v[:, :high]), dim=1)


class FullCache(LayerCache):
    """Keeps the keys and values of every position of the context."""

    @property
    def nbytes(self) -> int:
        return self.k.nbytes + self.v.nbytes

    def first_visible(self, position: int) -> int:
        return 0

    def extend(self, start: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        self.write(start, k, v)
        end = start + len(k)
        return self.k.narrow(1, 0, end), self.v.narrow(1, 0, end)

    def can_rewind_to(self, length: int, written: int) -> bool:
        return True

    def snapshot(self, length: int) -> Restore:
        return lambda: None  # a prefix's rows are overwritten only when the text differs


class RingCache(LayerCache):
    """Keeps the positions that a sliding window sees: ``window - 1`` beside the query's own, plus slack for the rows of
    one pass, which would otherwise overwrite visible keys when they are refused."""

    def __init__(
        self, kv_heads: int, capacity: int, head_dim: int, dtype: torch.dtype, device: torch.device, window: int
    ):
        super().__init__(kv_heads, capacity, head_dim, dtype, device)
        self.window = window

    @property
    def nbytes(self) -> int:
        return 2 * (self.k.nbytes + self.v.nbytes)

    def first_visible(self, position: int) -> int:
        return max(0, position - self.window + 1)

    def can_rewind_to(self, length: int, written: int) -> bool:
        return written - self.first_visible(length) <= self.capacity

    def snapshot(self, length: int) -> Restore:
        k, v = self.k.clone(), self.v.clone()

        def restore() -> None:
            self.k.copy_(k)
            self.v.copy_(v)

        return restore
