"""Products of matrices as tensor cores make them: the sums of every row in the same order.

In Triton's interpreter NumPy multiplies, and the order of its sums depends on where in the matrix a row stands.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


def sum_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the test ends, a row's products have the same bits wherever it stands."""

    def multiply(a: Any, b: Any, dtype: Any) -> Any:
        total = np.zeros((*a.shape[:-1], b.shape[-1]), dtype)
        for depth in range(a.shape[-1]):
            total += a[..., depth, None] * b[..., None, depth, :]
        return total

    interpreter = pytest.importorskip("triton.runtime.interpreter")
    monkeypatch.setattr(interpreter.np, "matmul", multiply)
