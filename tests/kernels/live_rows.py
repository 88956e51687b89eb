"""Leaves out programs of dead rows, and splits that no row of a short text has, which calculate and store nothing that
anybody reads: in Triton's interpreter they were most of the time that rounds and passes take. The tests of these
kernels run all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from torch import Tensor

from engine.kernels.decode import block_conv, norm
from engine.kernels.decode.attention import attend_rows as attention
from engine.kernels.decode.attention import context_store, rope
from engine.kernels.decode.experts import shared_expert
from engine.kernels.decode.products import head
from engine.kernels.decode.recurrent import delta, gates
from engine.kernels.round import choices, sample
from engine.models.dflash.draft_pass import DFlashDraftPass
from engine.models.paired_pass import PairedDraftPass
from engine.models.rows_pass import RowsPass

_BY_ROWS = (
    *((rope, "_norm_rope_store", 0), (context_store, "_store_context", 0), (attention, "_combine_splits", 0)),
    *((sample, "_count_digits", 1), (sample, "_find_digit", 0), (sample, "_weigh_tiles", 1), (sample, "_draw", 0)),
    (delta, "_prepare", 0),
)
"""Kernels that are told how many rows are live, and which dimension of their grids is the rows'."""
_OF_PASSES = (
    *((norm, name) for name in ("_embed_rows", "_after_attention", "_after_feed_forward", "_add_and_norm")),
    *((shared_expert, "_after_experts"), (head, "_pick"), (gates, "_norm_and_gate"), (gates, "_gate_heads")),
    *((block_conv, "_block_conv"), (block_conv, "_conv_and_norm"), (choices, "_pick_choices")),
)
"""Kernels that are not told: a program is a row of the pass, or of the draft, that launches them."""


def leave_out_dead_rows(patch: pytest.MonkeyPatch) -> None:
    """Wherever wrappers launch these kernels with a program for each row, or add a row's splits in order."""
    of_pass: list[int | None] = []
    for module, name, dimension in _BY_ROWS:
        kernel = getattr(module, name)
        rows = kernel.arg_names.index("rows")
        patch.setattr(module, name, _OfLiveRows(kernel, dimension, lambda arguments, at=rows: _live(arguments[at])))
    for module, name in _OF_PASSES:
        patch.setattr(module, name, _OfLiveRows(getattr(module, name), 0, lambda _: of_pass[-1] if of_pass else None))

    def tell(passes: type, name: str, rows_of: Callable[..., Tensor]) -> None:
        run = getattr(passes, name)

        def told(self: Any, *arguments: Any, **others: Any) -> None:
            live = _live(rows_of(self, *arguments))
            of_pass.append(live)
            try:
                run(self, *arguments, **others)
            finally:
                of_pass.pop()

        patch.setattr(passes, name, told)

    tell(RowsPass, "forward", lambda of_target, *_: of_target.rows)
    tell(DFlashDraftPass, "draft", lambda drafts, *_: drafts._rows.draft_width)
    for drafts in (DFlashDraftPass, PairedDraftPass):
        tell(drafts, "ingest", lambda drafts, committed=None: (committed or drafts._waiting).rows)
    for name in ("_scan", "_fold"):
        patch.setattr(delta, name, _OfHalves(getattr(delta, name)))
    patch.setattr(attention, "ADDED_IN_ORDER", 3)


def _live(rows: Tensor | None) -> int | None:
    return None if rows is None or rows.is_meta else max(1, int(rows))


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


class _OfHalves:
    """A kernel of states with two programs for each head, which sum as many smaller ones do."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def launch(*arguments: Any, **constants: Any) -> None:
            sizes = 2 * constants["HEADS"], *grid[1:]
            self._kernel[sizes](*arguments, **constants | {"VALUES": constants["VALUE_DIM"] // 2})

        return launch
