"""A model's KV cache: the states of its layers under one cursor, ``length``, the committed positions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from .layer_cache import LayerCache
from .layer_state import Restore, StatefulLayer


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cache as it was at one moment: its cursor, its furthest row, and what brings each layer back."""

    length: int
    written: int
    layers: tuple[Restore, ...]


class Cache:
    """What all layers of one model keep of one sequence."""

    def __init__(
        self,
        layers: Iterable[StatefulLayer],
        max_context: int,
        slack: int,
        dtype: torch.dtype,
        device: torch.device,
    ):
        """``slack``: how many rows of one pass may be refused, at most."""
        self.layers = [layer.new_state(max_context, slack, dtype, device) for layer in layers]
        self.device = device
        self.length = 0
        self.written = 0
        """End of the furthest row ever run, committed or refused: rings have lost what lies too far before it."""

    @property
    def attention(self) -> list[LayerCache]:
        """The states of those layers that keep keys and values."""
        return [layer for layer in self.layers if isinstance(layer, LayerCache)]

    @property
    def nbytes(self) -> int:
        """Bytes on the device, those of one snapshot included."""
        return sum(layer.nbytes for layer in self.layers)

    def positions(self, start: int, end: int) -> torch.Tensor:
        """The positions of a pass's rows, int64 [end - start]. Where many texts share a pass, each has its own."""
        return torch.arange(start, end, device=self.device)

    def note_written(self, end: int) -> None:
        """Notes that a pass runs rows up to ``end``. Whoever rewinds this cache must have noted every pass."""
        self.written = max(self.written, end)

    def commit(self, length: int) -> None:
        """Moves the cursor over the first rows of the last pass, up to ``length``; refuses the others."""
        for layer in self.layers:
            layer.commit(length)
        self.length = length

    def note_rows_by_kernels(self, length: int, written: int) -> None:
        """Moves the cursor after kernels that ran rows up to ``written`` and committed those up to ``length``."""
        self.note_written(written)
        for layer in self.layers:
            layer.note_rows_by_kernels(self.length, length, written)
        self.length = length

    def set_length_for_timing(self, length: int) -> None:
        """For measuring: moves the cursor as if the rows before it had been run. What layers hold stays."""
        self.length = self.written = length
        for layer in self.layers:
            layer.set_length_for_timing(length)

    def can_rewind_to(self, length: int) -> bool:
        """Whether the cursor may go back to ``length``."""
        return length <= self.length and self.could_rewind(length, self.written)

    def could_rewind(self, length: int, written: int) -> bool:
        """Whether the cursor could go back to ``length`` once rows up to ``written`` were run."""
        return all(layer.can_rewind_to(length, written) for layer in self.layers)

    def rewind(self, length: int) -> None:
        """Takes the cursor back to ``length``, where ``can_rewind_to`` allows it."""
        assert self.can_rewind_to(length), "the layers have lost what they held there"
        self.commit(length)

    def snapshot(self, length: int | None = None) -> Snapshot:
        """Remembers this moment, at the cost of what later passes overwrite. Restoring moves the cursor to ``length``
        (default: here), which must be reachable now."""
        length = self.length if length is None else length
        assert self.can_rewind_to(length), "the layers have lost what this snapshot should keep"
        return Snapshot(length, self.written, tuple(layer.snapshot(length) for layer in self.layers))

    def restore(self, snapshot: Snapshot) -> None:
        """Goes back to a snapshot of this cache. The text before it must be the same as then."""
        for restore in snapshot.layers:
            restore()
        self.length, self.written = snapshot.length, snapshot.written

    def clear(self) -> None:
        """Forgets the text: the cursor goes back to 0."""
        self.length = self.written = 0
        for layer in self.layers:
            layer.clear()
