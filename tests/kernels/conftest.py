"""What the kernels' tests share."""

from __future__ import annotations

import pytest

from engine.kernels.toolchain.jit import INTERPRETED
from support.ordered_sums import sum_in_order
from tests.kernels.live_rows import leave_out_dead_rows

if INTERPRETED:
    from support.quick_interpreter import hurry

    hurry()


@pytest.fixture
def ordered_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """See :func:`sum_in_order`."""
    sum_in_order(monkeypatch)


@pytest.fixture
def only_live_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """See :func:`leave_out_dead_rows`."""
    leave_out_dead_rows(monkeypatch)
