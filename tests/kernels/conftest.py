"""What the kernels' tests share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


@pytest.fixture
def ordered_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of matrices as tensor cores make them: every row in the same order. NumPy's depend on a row's place."""

    def multiply(a: np.ndarray, b: np.ndarray, dtype: Any) -> np.ndarray:
        total = np.zeros((a.shape[0], b.shape[1]), dtype)
        for depth in range(a.shape[1]):
            total += a[:, depth, None] * b[None, depth]
        return total

    interpreter = pytest.importorskip("triton.runtime.interpreter")
    monkeypatch.setattr(interpreter.np, "matmul", multiply)
