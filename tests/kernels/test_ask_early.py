"""What is asked into L2 before a launch waits: lines of its program's first tiles, in Triton's interpreter."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from engine.kernels.toolchain.jit import INTERPRETED, jit, tl
from engine.kernels.weights.fp8 import Fp8Weight
from engine.kernels.weights.int4 import Int4Weight
from engine.kernels.weights.plain import PlainWeight
from engine.kernels.weights.weight import Weight

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

if INTERPRETED:
    from engine.kernels.decode import ask_early
    from engine.kernels.weights.matrix import FP8, Matrix

ROWS, DEPTH, LINE = 64, 512, 128


@jit
def _asked(
    data: tl.tensor, out: tl.tensor, column: tl.tensor, start: tl.tensor, N: tl.constexpr, K: tl.constexpr,
    FORMAT: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, STEPS: tl.constexpr, INTER: tl.constexpr,
) -> None:  # fmt: skip
    if FORMAT >= FP8:
        at = ask_early._of_panels(Matrix(data, None, N, K, FORMAT), 0, column, start, BLOCK_N, BLOCK_K, STEPS, INTER)
    else:
        at = ask_early._of_rows(Matrix(data, None, N, K, FORMAT), 0, column, start, BLOCK_N, BLOCK_K, STEPS, INTER)
    at = at.reshape(at.shape[0] * at.shape[1])
    tl.store(out + tl.arange(0, at.shape[0]), at)


def asked(weight: Weight, column: int, start: int, columns: int, depth: int, steps: int, inter: int) -> set[int]:
    """Bytes of the weight, from its first on, at which lines begin."""
    out = torch.full((1024,), -1, dtype=torch.int64)
    _asked[(1,)](
        weight.values, out, column, start, N=ROWS, K=DEPTH, FORMAT=weight.format, BLOCK_N=columns, BLOCK_K=depth,
        STEPS=steps, INTER=inter,
    )  # fmt: skip
    return {place - weight.values.data_ptr() for place in out.tolist() if place != -1}


def lines_of(weight: Weight, rows: Tensor, numbers: slice) -> set[int]:
    """Lines that hold these numbers of these rows."""
    if isinstance(weight, PlainWeight):
        places = torch.arange(ROWS * DEPTH).reshape(ROWS, DEPTH)[rows, numbers] * 2
        return set((places // LINE * LINE).flatten().tolist())
    width = weight.values.shape[-1]
    panels, blocks = rows.unique() // 16, torch.arange(numbers.start // 32, numbers.stop // 32)
    first = (panels[:, None] * (DEPTH // 32) + blocks[None, :]).flatten() * 16 * width
    return {int(at) + line for at in first for line in range(0, 16 * width, LINE)}


@pytest.mark.parametrize("inter", [0, ROWS // 2])
@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("kind", [PlainWeight, Fp8Weight, Int4Weight])
def test_lines_of_the_first_tiles(kind: type[Weight], steps: int, inter: int) -> None:
    noise = torch.randn(ROWS, DEPTH)
    weight = PlainWeight(noise.bfloat16()) if kind is PlainWeight else kind.of(noise)
    rows = torch.arange(16, 48) if inter == 0 else torch.cat([torch.arange(16, 32), torch.arange(48, 64)])
    found = asked(weight, 16, 128, 32, 64, steps, inter)
    assert found == lines_of(weight, rows, slice(128, 128 + 64 * steps))


def test_splits_past_the_end_ask_for_the_last_line() -> None:
    weight = PlainWeight(torch.zeros(ROWS, DEPTH, dtype=torch.bfloat16))
    assert asked(weight, 48, DEPTH, 32, 64, 1, 0) == lines_of(weight, torch.arange(48, 64), slice(DEPTH - 64, DEPTH))
