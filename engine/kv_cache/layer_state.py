"""The protocol of what any layer keeps of the text it has run: the *layer state*."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import torch

Restore = Callable[[], None]
"""Brings a state back to what it was when this was made."""


class LayerState(Protocol):
    """What a layer keeps of a sequence. A pass runs rows from the cursor on; one ``commit`` behind it keeps the
    accepted ones. How the layer's forward reads and writes its state is up to the layer."""

    @property
    def nbytes(self) -> int:
        """Bytes on the device, those of one snapshot included."""

    def commit(self, length: int) -> None:
        """Keeps what belongs to positions below ``length`` and drops the rest: of the last pass its first rows stay."""

    def note_rows_by_kernels(self, start: int, length: int, written: int) -> None:
        """Notes that kernels ran rows from ``start`` up to ``written``, and that those below ``length`` count."""

    def set_length_for_timing(self, length: int) -> None:
        """Behaves, for measurements, as if it held ``length`` positions: their values may be anything."""

    def can_rewind_to(self, length: int, written: int) -> bool:
        """Whether ``commit`` may go back to ``length`` after rows up to ``written`` have been, or will have been,
        run."""

    def snapshot(self, length: int) -> Restore:
        """Returns a function that restores the state at ``length`` rows. Requires ``can_rewind_to`` that length."""

    def clear(self) -> None:
        """Forgets everything."""


class CursorState(LayerState):
    """A state about which the cursor says all: nobody reads what lies past it before it is overwritten. So nothing is
    to be done when rows are committed or dropped."""

    def commit(self, length: int) -> None:
        """Changes nothing: rows from ``length`` on will be overwritten before anybody reads them."""

    def note_rows_by_kernels(self, start: int, length: int, written: int) -> None:
        """Changes nothing: kernels have written the rows themselves."""

    def set_length_for_timing(self, length: int) -> None:
        """Takes the first ``length`` positions as written, for timing. Nothing changes: their values may be any."""

    def clear(self) -> None:
        """Changes nothing: every row is written again before anybody reads it."""


class StatefulLayer(Protocol):
    """A layer's config, which knows what such a layer keeps."""

    def new_state(self, max_context: int, slack: int, dtype: torch.dtype, device: torch.device) -> LayerState:
        """An empty state for ``max_context`` positions. ``slack``: how many rows of a pass may be refused, at most."""
