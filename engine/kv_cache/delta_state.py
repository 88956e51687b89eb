"""What a gated delta net keeps: a matrix of each head, which forgets as it learns, and the convolution's last inputs.

No cursor can take such a state back. So it stands where the last pass began, beside what that pass's rows say to it,
and how many of them count is a number: the next pass begins by taking so many into the state, row by row as if they had
come alone. What was refused never touched it. A pass of a prompt writes the state at once, and leaves a copy of what it
was before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from ..kernels.reference.delta import DeltaRows, scan
from ..kernels.toolchain.jit import MAX_ROWS
from ..layer_config import DELTA_TAPS, DeltaConfig
from .layer_state import LayerState, Restore

MOST_REFUSED = 64
"""Rows that a pass may have for some of them to be refused: a wide round's. Those of a longer one all count."""


class Moment(NamedTuple):
    """The state at one position."""

    recurrent: Tensor
    """[value heads, value channels, key channels], fp32 even where the model is bf16."""
    window: Tensor
    """[3, channels]: the last inputs of the convolution."""

    @property
    def nbytes(self) -> int:
        return self.recurrent.nbytes + self.window.nbytes

    def copy(self) -> Moment:
        return Moment(self.recurrent.clone(), self.window.clone())

    def become(self, other: Moment) -> None:
        self.recurrent.copy_(other.recurrent)
        self.window.copy_(other.window)

    def take(self, rows: DeltaRows) -> None:
        """Goes on by these rows."""
        scan(self.recurrent, rows)
        self.slide(rows.raw)

    def slide(self, raw: Tensor) -> None:
        """Moves the window on over inputs of the convolution."""
        self.window.copy_(torch.cat((self.window, raw[1 - DELTA_TAPS :]))[1 - DELTA_TAPS :])


Take = Callable[[Moment, DeltaRows], None]
"""Takes rows into a moment, in place."""


def new_delta_state(config: DeltaConfig, dtype: torch.dtype, device: torch.device) -> DeltaState:
    """An empty one."""
    heads, keys, wide = config.num_value_heads, config.num_key_heads, torch.promote_types(dtype, torch.float32)

    def zeros(*shape: int, of: torch.dtype = wide) -> Tensor:
        return torch.zeros(shape, dtype=of, device=device)

    now = Moment(zeros(heads, config.value_dim, config.key_dim), zeros(DELTA_TAPS - 1, config.channels, of=dtype))
    rows = DeltaRows(
        zeros(MAX_ROWS, config.channels, of=dtype),
        zeros(MAX_ROWS, keys, config.key_dim),
        zeros(MAX_ROWS, heads, config.value_dim),
        zeros(MAX_ROWS, heads),
        zeros(MAX_ROWS, heads),
    )
    return DeltaState(now, rows)


class DeltaState(LayerState):
    """Its tensors stay where they are: kernels hold their addresses."""

    def __init__(self, now: Moment, rows: DeltaRows):
        """``now`` is all zeros; ``rows`` has places for 16."""
        self.now, self.rows = now, rows
        """Where the last pass began, unless that was a long one; and what its rows say."""
        self.at = torch.zeros(1, dtype=torch.int32, device=now.window.device)
        """The same position for kernels, which move it on by themselves."""
        self.take: Take = Moment.take
        """Kernels' own where they run the rounds: then all that is ever taken in has their bits."""
        self._before, self._before_at = now.copy(), -1
        """What a pass of more rows began with, and where."""
        self._base = self._kept = 0
        self._pass: DeltaRows | None = None
        """Of a pass of more than 16 rows, until it is committed."""

    @property
    def nbytes(self) -> int:
        return 3 * self.now.nbytes + self.rows.nbytes + self.at.nbytes

    def begin(self, start: int) -> None:
        """Stands at ``start``, where a pass begins, with all rows before it taken in."""
        if start == self._before_at != self._base:
            self.now.become(self._before)
        elif start != self._base:
            assert self._base < start <= self._base + self._kept, "its rows are forgotten"
            self.take(self.now, self.rows.first(start - self._base))
        self._stand(start)

    def keep(self, rows: DeltaRows) -> bool:
        """Keeps what the rows of a pass say that has begun here, for some of them to be refused. False where there are
        too many: they then all go into the state, by ``wrote``."""
        if len(rows.raw) <= MAX_ROWS:
            for kept, new in zip(self.rows, rows, strict=True):
                kept[: len(new)] = new
            self.keeps(len(rows.raw))
            return True
        self.begin_long()
        if len(rows.raw) <= MOST_REFUSED:
            self._pass = rows
            return True
        return False

    def keeps(self, count: int) -> None:
        """Says that ``rows`` now hold so many of a pass that has begun here."""
        self._kept = count

    def begin_long(self) -> None:
        """Copies what a pass writes over that begins here."""
        self._before.become(self.now)
        self._before_at = self._base

    def wrote(self, count: int) -> None:
        """Says that a pass has taken so many rows in."""
        before_at = self._before_at
        self._stand(self._base + count)
        self._before_at = before_at

    def commit(self, length: int) -> None:
        if self._pass is not None:
            count = length - self._base
            if count > 0:
                self.take(self.now, self._pass.first(count))
            self.wrote(count)
        elif not self._base <= length <= self._base + self._kept:
            assert length == self._before_at, "its rows are forgotten"
            self.now.become(self._before)
            self._stand(length)

    def follow(self, start: int, length: int, written: int) -> None:
        self._base, self._kept, self._before_at, self._pass = start, written - start, -1, None

    def pretend(self, length: int) -> None:
        self._stand(length)

    def can_rewind_to(self, length: int, written: int) -> bool:
        return self._base <= length <= self._base + self._kept or length == self._before_at

    def moment(self, length: int) -> Moment:
        """A copy of the state behind ``length`` positions, to which this can be rewound."""
        if not self._base <= length <= self._base + self._kept:
            return self._before.copy()
        then = self.now.copy()
        if length > self._base:
            self.take(then, self.rows.first(length - self._base))
        return then

    def snapshot(self, length: int) -> Restore:
        then = self.moment(length)

        def restore() -> None:
            self.now.become(then)
            self._stand(length)

        return restore

    def clear(self) -> None:
        for part in self.now:
            part.zero_()
        self._stand(0)

    def _stand(self, length: int) -> None:
        """Says that the state is that behind ``length`` positions."""
        self._base, self._kept, self._before_at, self._pass = length, 0, -1, None
        self.at.fill_(length)
