"""Keys and values of committed tokens, and of the block being verified.

One cursor, ``length``, says how many positions are committed. Rows are written past it while a block is verified;
accepting moves the cursor over them, rejecting leaves it, and the next block overwrites what was refused. Nothing is
copied either way.

A sliding layer needs only its last ``window - 1`` positions, so it keeps a ring. The ring has slack for the rows of
one forward pass: with exactly ``window`` rows, refused rows would have overwritten keys that are still visible.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..layer_config import AttentionConfig


def capacity_of(layer: AttentionConfig, max_context: int, slack: int) -> int:
    """Rows of one layer's cache."""
    return max_context if layer.window is None else min(max_context, layer.window - 1 + slack)


def cache_bytes(layers: Iterable[AttentionConfig], max_context: int, slack: int, dtype: torch.dtype) -> int:
    """What the caches of these layers take, a snapshot of every ring included."""
    return sum(
        2 * layer.num_kv_heads * layer.head_dim * dtype.itemsize * copies * capacity_of(layer, max_context, slack)
        for layer in layers
        for copies in [1 if layer.window is None else 2]
    )


class LayerCache:
    """Keys and values of one layer, [kv_heads, capacity, head_dim] each; position p lives in row p % capacity."""

    def __init__(self, layer: AttentionConfig, max_context: int, slack: int, dtype: torch.dtype, device: torch.device):
        self.window = layer.window
        shape = (layer.num_kv_heads, capacity_of(layer, max_context, slack), layer.head_dim)
        self.k = torch.zeros(shape, dtype=dtype, device=device)
        self.v = torch.zeros(shape, dtype=dtype, device=device)
        self.written = 0
        """End of the furthest row ever written: a ring has lost everything ``capacity`` or more before it."""

    @property
    def capacity(self) -> int:
        return self.k.shape[1]

    def first_visible(self, position: int) -> int:
        """The oldest position that a query at ``position`` sees."""
        return 0 if self.window is None else max(0, position - self.window + 1)

    def write(self, start: int, k: Tensor, v: Tensor) -> None:
        """Stores rows [n, kv_heads, head_dim] of positions start .. start + n - 1; a ring keeps the last that fit."""
        skipped = max(0, k.shape[0] - self.capacity)
        start, k, v = start + skipped, k[skipped:], v[skipped:]
        count = k.shape[0]
        first = start % self.capacity
        head = min(count, self.capacity - first)
        for store, rows in ((self.k, k.transpose(0, 1)), (self.v, v.transpose(0, 1))):
            store[:, first : first + head] = rows[:, :head]
            store[:, : count - head] = rows[:, head:]
        self.written = max(self.written, start + count)

    def extend(self, start: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Stores rows as ``write`` does; returns what they see, from first_visible(start) on to the last of them.

        Rows that a ring has no room for beside the keys they see are seen all the same: a long piece of a prompt
        needs no larger ring than a block does.
        """
        first, end = self.first_visible(start), start + k.shape[0]
        if end - first <= self.capacity:
            self.write(start, k, v)
            return self.read(first, end)
        before = self.read(first, start)
        seen_k, seen_v = (torch.cat((old, new.transpose(0, 1)), 1) for old, new in zip(before, (k, v), strict=True))
        self.write(start, k, v)
        return seen_k, seen_v

    def holds_for(self, position: int) -> bool:
        """Whether everything that a query at ``position`` sees is still here."""
        return self.window is None or self.written - self.first_visible(position) <= self.capacity

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


@dataclass(frozen=True, slots=True)
class Ring:
    """A copy of one sliding layer's ring."""

    k: Tensor
    v: Tensor
    written: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cache's cursor and its rings as they were; full-length layers only ever grow, so they need no copy."""

    length: int
    rings: tuple[Ring | None, ...]


class Cache:
    """The caches of all layers of one model under one cursor."""

    def __init__(
        self,
        layers: Sequence[AttentionConfig],
        max_context: int,
        slack: int,
        dtype: torch.dtype,
        device: torch.device,
    ):
        """``slack`` is the most rows that one forward pass writes past the cursor."""
        self.layers = [LayerCache(layer, max_context, slack, dtype, device) for layer in layers]
        self.length = 0

    def commit(self, length: int) -> None:
        """Moves the cursor: positions below ``length`` are committed, whatever was written past it is refused."""
        self.length = length

    def note_written(self, end: int) -> None:
        """Says that rows up to ``end`` were written without ``write``: by kernels, at a cursor of the device's own."""
        for layer in self.layers:
            layer.written = max(layer.written, end)

    def can_rewind_to(self, length: int) -> bool:
        """Whether the cursor may go back to ``length``: the rings still hold what a query there sees."""
        return length <= self.length and all(layer.holds_for(length) for layer in self.layers)

    def snapshot(self, length: int | None = None) -> Snapshot:
        """Remembers this moment; costs one copy of the rings.

        Restoring it moves the cursor to ``length``, here if None, where the rings must hold what a query sees.
        """
        length = self.length if length is None else length
        assert self.can_rewind_to(length), "the rings have lost what this snapshot should keep"
        rings = (
            None if layer.window is None else Ring(layer.k.clone(), layer.v.clone(), layer.written)
            for layer in self.layers
        )
        return Snapshot(length, tuple(rings))

    def restore(self, snapshot: Snapshot) -> None:
        """Goes back to a snapshot of this cache. Full-length layers must still hold what they held then."""
        for layer, ring in zip(self.layers, snapshot.rings, strict=True):
            if ring is not None:
                layer.k.copy_(ring.k)
                layer.v.copy_(ring.v)
                layer.written = ring.written
        self.length = snapshot.length

    def clear(self) -> None:
        """Forgets everything."""
        self.length = 0
        for layer in self.layers:
            layer.written = 0
