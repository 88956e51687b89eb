"""What the kernels' tests share."""

from __future__ import annotations

import pytest

from tests.kernels.ordered_sums import sum_in_order


@pytest.fixture
def ordered_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """See :func:`sum_in_order`."""
    sum_in_order(monkeypatch)
