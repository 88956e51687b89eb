"""Leaves out programs of dead rows, and splits that no row of a short text has, which calculate and store nothing that
anybody reads: in Triton's interpreter they were most of the time that rounds and passes take. The tests of these
kernels run all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from torch import Tensor

from engine.kernels.decode import attention, context_store, head, norm, rope, shared_expert
from engine.kernels.round import sample
from engine.models.rows_pass import RowsPass

_BY_ROWS = (
    *((rope, "_norm_rope_store", 0), (context_store, "_store_context", 0), (attention, "_combine_splits", 0)),
    *((sample, "_count_digits", 1), (sample, "_find_digit", 0), (sample, "_weigh_tiles", 1), (sample, "_draw", 0)),
)
"""Kernels that are told how many rows are live, and which dimension of their grids is the rows'."""
_OF_PASSES = (
    *((norm, name) for name in ("_embed_rows", "_after_attention", "_after_feed_forward", "_add_and_norm")),
    *((shared_expert, "_after_experts"), (head, "_pick")),
)
"""Kernels that are not told: a program is a row of the pass that launches them."""


def leave_out_dead_rows(patch: pytest.MonkeyPatch) -> None:
    """Wherever wrappers launch these kernels with a program for each row, or add a row's splits in order."""
    of_pass: list[int] = []
    for module, name, dimension in _BY_ROWS:
        kernel = getattr(module, name)
        rows = kernel.arg_names.index("rows")
        patch.setattr(module, name, _OfLiveRows(kernel, dimension, lambda arguments, at=rows: _live(arguments[at])))
    for module, name in _OF_PASSES:
        patch.setattr(module, name, _OfLiveRows(getattr(module, name), 0, lambda _: of_pass[-1] if of_pass else None))
    forward = RowsPass.forward

    def counted(self: RowsPass[Any], *arguments: Any, **others: Any) -> None:
        live = _live(self.rows)
        if live is None:
            return forward(self, *arguments, **others)
        of_pass.append(live)
        try:
            forward(self, *arguments, **others)
        finally:
            of_pass.pop()

    patch.setattr(RowsPass, "forward", counted)
    patch.setattr(attention, "ADDED_IN_ORDER", 3)


def _live(rows: Tensor) -> int | None:
    return None if rows.is_meta else max(1, int(rows))


class _OfLiveRows:
    """A kernel with a program for each live row alone."""

    def __init__(self, kernel: Any, dimension: int, live: Callable[[tuple[Any, ...]], int | None]) -> None:
        self._kernel, self._dimension, self._live = kernel, dimension, live

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def launch(*arguments: Any, **constants: Any) -> None:
            sizes, live = list(grid), self._live(arguments)
            if live is not None:
                sizes[self._dimension] = min(sizes[self._dimension], live)
            self._kernel[tuple(sizes)](*arguments, **constants)

        return launch
