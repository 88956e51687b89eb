"""Products of matrices as tensor cores make them: the sums of every row in the same order.

In Triton's interpreter NumPy multiplies, and the order of its sums depends on where in the matrix a row stands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pytest


def sum_in_order(monkeypatch: pytest.MonkeyPatch | None = None) -> None:
    """A row's products have the same bits wherever it stands, and in however many steps: until the test ends, or, for
    a script, from now on."""
    from triton.runtime import interpreter

    def multiply(_builder: Any, a: Any, b: Any, total: Any, *_options: Any) -> Any:
        steps = np.empty((a.data.shape[-1] + 1, *total.data.shape), total.data.dtype)
        steps[0] = total.data
        np.multiply(np.moveaxis(a.data, -1, 0)[..., None], np.moveaxis(b.data, -2, 0)[..., None, :], out=steps[1:])
        # Along its first dimension NumPy adds one after the other, and elsewhere pairs of pairs.
        return interpreter.TensorHandle(np.add.reduce(steps, axis=0), total.dtype.scalar)

    if monkeypatch is None:
        interpreter.InterpreterBuilder.create_dot = multiply
    else:
        monkeypatch.setattr(interpreter.InterpreterBuilder, "create_dot", multiply)
