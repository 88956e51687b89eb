"""What a drafter keeps of the target's hidden states that pairs each with the token that comes next."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .layer_state import CursorState, Restore


@dataclass(frozen=True, slots=True)
class LastRows:
    """The layer config of the target's hidden states behind the newest committed rows."""

    size: int

    def new_state(self, max_context: int, slack: int, dtype: torch.dtype, device: torch.device) -> LastRowsState:
        return LastRowsState(torch.zeros(min(max_context, slack) + 1, self.size, dtype=dtype, device=device))


class LastRowsState(CursorState):
    """Holds the target's hidden states behind the newest committed rows: as many as a text may go back by and one more,
    so that there is a row before each place that it can go back to."""

    def __init__(self, rows: Tensor):
        """``rows`` [count, hidden]; position p lies in row p % count."""
        self.rows = rows

    @property
    def nbytes(self) -> int:
        return 2 * self.rows.nbytes

    def at(self, position: int) -> Tensor:
        """The hidden state behind ``position``, [1, hidden]."""
        return self.rows[position % len(self.rows)][None]

    def write(self, start: int, rows: Tensor) -> None:
        """Keeps the last of rows [n, hidden] at positions start .. start + n - 1."""
        newest = rows[-len(self.rows) :]
        first = start + len(rows) - len(newest)
        places = torch.arange(first, first + len(newest), device=rows.device) % len(self.rows)
        self.rows[places] = newest

    def can_rewind_to(self, length: int, written: int) -> bool:
        return length == 0 or written - length < len(self.rows)

    def snapshot(self, length: int) -> Restore:
        rows = self.rows.clone()

        def restore() -> None:
            self.rows.copy_(rows)

        return restore
