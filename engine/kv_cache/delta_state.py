"""What a gated delta net keeps: a matrix of each head, which forgets as it learns, and the convolution's last inputs.

No cursor can take such a state back. So it stays where the last pass began, together with what that pass's rows would
add, and a number says how many of those rows count: the next pass begins by taking these into the state, row by row as
if they had come alone. Refused rows never touch it. A pass over a prompt writes the state at once, and leaves a copy of
what it was before."""

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
"""The most rows of a pass of which some may be refused: a wide round's. All rows of a longer pass count."""


class RecurrentState(NamedTuple):
    """A gated delta net's state at one position of the text."""

    recurrent: Tensor
    """[value heads, value channels, key channels], fp32 even where the model is bf16."""
    window: Tensor
    """[3, channels]: the last inputs of the convolution."""

    @property
    def nbytes(self) -> int:
        return self.recurrent.nbytes + self.window.nbytes

    def copy(self) -> RecurrentState:
        return RecurrentState(self.recurrent.clone(), self.window.clone())

    def copy_from(self, other: RecurrentState) -> None:
        self.recurrent.copy_(other.recurrent)
        self.window.copy_(other.window)

    def take(self, rows: DeltaRows) -> None:
        """Takes rows into the state one after the other, in place."""
        scan(self.recurrent, rows)
        self.slide(rows.raw)

    def slide(self, raw: Tensor) -> None:
        """Moves the window of convolution inputs on by the rows of ``raw`` [n, channels]."""
        self.window.copy_(torch.cat((self.window, raw[1 - DELTA_TAPS :]))[1 - DELTA_TAPS :])


Take = Callable[[RecurrentState, DeltaRows], None]
"""Takes rows into a moment one after the other, in place."""


def new_delta_state(config: DeltaConfig, dtype: torch.dtype, device: torch.device) -> DeltaState:
    """An empty state for one gated delta net of this shape."""
    heads, keys, wide = config.num_value_heads, config.num_key_heads, torch.promote_types(dtype, torch.float32)

    def zeros(*shape: int, of: torch.dtype = wide) -> Tensor:
        return torch.zeros(shape, dtype=of, device=device)

    now = RecurrentState(
        zeros(heads, config.value_dim, config.key_dim), zeros(DELTA_TAPS - 1, config.channels, of=dtype)
    )
    rows = DeltaRows(
        zeros(MAX_ROWS, config.channels, of=dtype),
        zeros(MAX_ROWS, keys, config.key_dim),
        zeros(MAX_ROWS, heads, config.value_dim),
        zeros(MAX_ROWS, heads),
        zeros(MAX_ROWS, heads),
    )
    return DeltaState(now, rows)


class DeltaState(LayerState):
    """The state of one layer. Its tensors stay where they are, since kernels hold their addresses."""

    def __init__(self, now: RecurrentState, rows: DeltaRows):
        """``now`` is all zeros; ``rows`` has room for 16."""
        self.now, self.rows = now, rows
        """The state at which the last pass began, unless that was a long one, and the rows of that pass."""
        self.at = torch.zeros(1, dtype=torch.int32, device=now.window.device)
        """The position of ``now`` for kernels, which move it on by themselves."""
        self.take: Take = RecurrentState.take
        """What takes rows into a moment; the kernels' own function where they run the rounds, so that every row that is
        ever taken in has the same bits."""
        self._long_pass_state, self._long_pass_start = now.copy(), -1
        """The state at which the last long pass began, and its position."""
        self._position = self._num_stored = 0
        self._long_pass_rows: DeltaRows | None = None
        """The rows of a pass of more than 16, until it is committed."""

    @property
    def nbytes(self) -> int:
        return 3 * self.now.nbytes + self.rows.nbytes + self.at.nbytes

    def begin(self, start: int) -> None:
        """Brings ``now`` to ``start``, where a pass begins: takes in the accepted rows before it."""
        if start == self._long_pass_start != self._position:
            self.now.copy_from(self._long_pass_state)
        elif start != self._position:
            assert self._position < start <= self._position + self._num_stored, "its rows are forgotten"
            self.take(self.now, self.rows.first(start - self._position))
        self._set_position(start)

    def store_rows(self, rows: DeltaRows) -> bool:
        """Stores the rows of the pass that begins at the state's position, so that some of them may be refused. Returns
        False for more rows than can be stored: all of them then go into the state (``wrote``)."""
        if len(rows.raw) <= MAX_ROWS:
            for stored, new in zip(self.rows, rows, strict=True):
                stored[: len(new)] = new
            self.set_num_rows(len(rows.raw))
            return True
        self.begin_long()
        if len(rows.raw) <= MOST_REFUSED:
            self._long_pass_rows = rows
            return True
        return False

    def set_num_rows(self, count: int) -> None:
        """Notes that ``rows`` hold the first ``count`` rows of the pass that has begun here."""
        self._num_stored = count

    def begin_long(self) -> None:
        """Copies the state before a long pass that begins here and writes over it."""
        self._long_pass_state.copy_from(self.now)
        self._long_pass_start = self._position

    def wrote(self, count: int) -> None:
        """Notes that a long pass has taken ``count`` rows into the state."""
        before_at = self._long_pass_start
        self._set_position(self._position + count)
        self._long_pass_start = before_at

    def commit(self, length: int) -> None:
        if self._long_pass_rows is not None:
            count = length - self._position
            if count > 0:
                self.take(self.now, self._long_pass_rows.first(count))
            self.wrote(count)
        elif not self._position <= length <= self._position + self._num_stored:
            assert length == self._long_pass_start, "its rows are forgotten"
            self.now.copy_from(self._long_pass_state)
            self._set_position(length)

    def note_rows_by_kernels(self, start: int, length: int, written: int) -> None:
        self._position, self._num_stored, self._long_pass_start, self._long_pass_rows = start, written - start, -1, None

    def set_length_for_timing(self, length: int) -> None:
        self._set_position(length)

    def can_rewind_to(self, length: int, written: int) -> bool:
        return self._position <= length <= self._position + self._num_stored or length == self._long_pass_start

    def moment(self, length: int) -> RecurrentState:
        """A copy of the state behind ``length`` positions, to which it can be rewound."""
        if not self._position <= length <= self._position + self._num_stored:
            return self._long_pass_state.copy()
        then = self.now.copy()
        if length > self._position:
            self.take(then, self.rows.first(length - self._position))
        return then

    def snapshot(self, length: int) -> Restore:
        then = self.moment(length)

        def restore() -> None:
            self.now.copy_from(then)
            self._set_position(length)

        return restore

    def clear(self) -> None:
        for tensor in self.now:
            tensor.zero_()
        self._set_position(0)

    def _set_position(self, length: int) -> None:
        """Notes that ``now`` is the state behind ``length`` positions."""
        self._position, self._num_stored, self._long_pass_start, self._long_pass_rows = length, 0, -1, None
        self.at.fill_(length)
