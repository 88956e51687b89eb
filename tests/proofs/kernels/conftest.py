"""The fixtures of ``tests/kernels``."""

from __future__ import annotations

from tests.kernels.conftest import only_live_rows, ordered_sums

__all__ = ["only_live_rows", "ordered_sums"]
