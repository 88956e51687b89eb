"""What is asked into L2 before a launch waits: lines of its program's first tiles, in Triton's interpreter."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from engine.kernels.toolchain.jit import INTERPRETED, jit, tl
from engine.kernels.weights.plain import PlainWeight

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

if INTERPRETED:
    from engine.kernels.decode.products import prefetch
    from engine.kernels.weights.matrix import Matrix

ROWS, DEPTH, LINE = 64, 512, 128


@jit
def _asked(
    data: tl.tensor, out: tl.tensor, column: tl.tensor, start: tl.tensor, N: tl.constexpr, K: tl.constexpr,
    FORMAT: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, STEPS: tl.constexpr, INTER: tl.constexpr,
) -> None:  # fmt: skip
    at = prefetch._of_rows(Matrix(data, None, N, K, FORMAT), 0, column, start, BLOCK_N, BLOCK_K, STEPS, INTER)
    at = at.reshape(at.shape[0] * at.shape[1])
    tl.store(out + tl.arange(0, at.shape[0]), at)


def asked(weight: PlainWeight, column: int, start: int, columns: int, depth: int, steps: int, inter: int) -> set[int]:
    """Bytes of the weight, from its first on, at which lines begin."""
    out = torch.full((1024,), -1, dtype=torch.int64)
    _asked[(1,)](
        weight.values, out, column, start, N=ROWS, K=DEPTH, FORMAT=weight.format, BLOCK_N=columns, BLOCK_K=depth,
        STEPS=steps, INTER=inter,
    )  # fmt: skip
    return {place - weight.values.data_ptr() for place in out.tolist() if place != -1}


def lines_of(rows: Tensor, numbers: slice) -> set[int]:
    """Lines that hold these numbers of these rows."""
    places = torch.arange(ROWS * DEPTH).reshape(ROWS, DEPTH)[rows, numbers] * 2
    return set((places // LINE * LINE).flatten().tolist())


@pytest.mark.parametrize("inter", [0, ROWS // 2])
@pytest.mark.parametrize("steps", [1, 3])
def test_lines_of_the_first_tiles(steps: int, inter: int) -> None:
    weight = PlainWeight(torch.randn(ROWS, DEPTH).bfloat16())
    rows = torch.arange(16, 48) if inter == 0 else torch.cat([torch.arange(16, 32), torch.arange(48, 64)])
    assert asked(weight, 16, 128, 32, 64, steps, inter) == lines_of(rows, slice(128, 128 + 64 * steps))


def test_splits_past_the_end_ask_for_the_last_line() -> None:
    weight = PlainWeight(torch.zeros(ROWS, DEPTH, dtype=torch.bfloat16))
    assert asked(weight, 48, DEPTH, 32, 64, 1, 0) == lines_of(torch.arange(48, 64), slice(DEPTH - 64, DEPTH))


def test_a_step_narrower_than_a_line_asks_for_that_line() -> None:
    weight = PlainWeight(torch.zeros(ROWS, DEPTH, dtype=torch.bfloat16))
    assert asked(weight, 16, 128, 32, 32, 1, 0) == lines_of(torch.arange(16, 48), slice(128, 160))
