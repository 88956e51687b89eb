"""Products of matrices as tensor cores make them: the sums of every row in the same order.

In Triton's interpreter NumPy multiplies, and the order of its sums depends on where in the matrix a row stands.
"""

from __future__ import annotations

from typing import Any

import pytest


def sum_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the test ends, a row's products have the same bits wherever it stands, and in however many steps."""
    interpreter = pytest.importorskip("triton.runtime.interpreter")

    def multiply(_builder: Any, a: Any, b: Any, total: Any, *_options: Any) -> Any:
        sums = total.data.copy()
        for depth in range(a.data.shape[-1]):
            sums += a.data[..., depth, None] * b.data[..., None, depth, :]
        return interpreter.TensorHandle(sums, total.dtype.scalar)

    monkeypatch.setattr(interpreter.InterpreterBuilder, "create_dot", multiply)
