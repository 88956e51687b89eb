"""Keeps the features of tokens that the target wrote alone, until sixteen are ingested at once at the cost of one."""

from __future__ import annotations

from torch import Tensor

from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import MAX_ROWS, tl

BLOCK = 1024


def reference_keep_features(features: Tensor, waiting: int, live: bool) -> None:
    """Copies row 16 of features [17, columns], the newest, behind the ``waiting`` first rows, if the round is ``live``
    and there is room."""
    if live and waiting < MAX_ROWS:
        features[waiting] = features[MAX_ROWS]


def keep_features(features: Tensor, waiting: Tensor, width: Tensor) -> None:
    """Does what ``reference_keep_features`` does by numbers on the device, int32 [1] each: ``waiting`` rows are kept
    already, and the round is live if its ``width`` isn't 0. Rows behind the sixteenth come only while nobody drafts,
    and are lost."""
    columns = features.shape[1]
    _keep_features[(-(-columns // BLOCK),)](features, waiting, width, COLUMNS=columns, BLOCK=BLOCK, MAX_ROWS=MAX_ROWS)


@early_kernel
def _keep_features(
    features: tl.tensor,
    waiting: tl.tensor,
    width: tl.tensor,
    COLUMNS: tl.constexpr,
    BLOCK: tl.constexpr,
    MAX_ROWS: tl.constexpr,
) -> None:
    wait_for_inputs()
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < COLUMNS
    # Every load before the store, none waiting for another.
    row = tl.load(waiting)
    live = tl.load(width) > 0
    newest = tl.load(features + MAX_ROWS * COLUMNS + lane, mask=inside, other=0.0)
    let_next_start()
    tl.store(features + row * COLUMNS + lane, newest, mask=inside & live & (row < MAX_ROWS))
