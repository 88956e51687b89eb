"""Leaves out programs of dead rows, and splits that no row of a short text has, which calculate and store nothing: in
Triton's interpreter they were half of the time that rounds and passes take. The tests of these kernels run all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from torch import Tensor

from engine.kernels.decode import attention, context_store, rope


def leave_out_dead_rows(patch: pytest.MonkeyPatch) -> None:
    """Wherever wrappers launch these kernels with a program for each row and head, or add a row's splits in order."""
    patch.setattr(rope, "_norm_rope_store", _OfLiveRows(rope._norm_rope_store))
    patch.setattr(context_store, "_store_context", _OfLiveRows(context_store._store_context))
    patch.setattr(attention, "ADDED_IN_ORDER", 3)


class _OfLiveRows:
    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self._rows = kernel.arg_names.index("rows")

    def __getitem__(self, grid: tuple[int, int]) -> Callable[..., None]:
        def launch(*arguments: Any, **constants: Any) -> None:
            rows: Tensor = arguments[self._rows]
            live = grid[0] if rows.is_meta else min(grid[0], max(1, int(rows)))
            self._kernel[(live, grid[1])](*arguments, **constants)

        return launch
