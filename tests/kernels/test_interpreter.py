"""Triton's interpreter, made fast, still refuses what it refused and promotes types as the compiler does."""

from __future__ import annotations

import pytest
import torch

from engine.kernels.toolchain.jit import INTERPRETED, tl, triton

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

if INTERPRETED:
    from triton.runtime.errors import InterpreterError

    @triton.jit
    def _add(numbers: tl.tensor, number: tl.tensor, out: tl.tensor) -> None:
        lane = tl.arange(0, 4)
        tl.store(out + lane, tl.load(numbers + lane) + number)

    @triton.jit
    def _calculate(numbers: tl.tensor, halves: tl.tensor, out: tl.tensor) -> None:
        lane = tl.arange(0, 4)
        whole, half = tl.load(numbers + lane), tl.load(halves + lane)
        tl.store(out + lane, (whole + half).to(tl.bfloat16))
        tl.store(out + 4 + lane, whole * 0.5 - half)
        tl.store(out + 8 + lane, 1 + whole * whole)
        square = whole[:, None] - whole[None, :]
        tl.store(out + 12 + lane, tl.sum((square >= 0).to(tl.int32), axis=1))


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint32])
def test_sums_that_overflow_are_refused(dtype: torch.dtype) -> None:
    numbers, out = torch.tensor([1, 2, 3, torch.iinfo(dtype).max - 5], dtype=dtype), torch.zeros(4, dtype=dtype)
    _add[(1,)](numbers, 5, out)
    assert out.tolist() == [each + 5 for each in numbers.tolist()]
    with pytest.raises(InterpreterError, match="overflow"):
        _add[(1,)](numbers, 6, out)


def test_types_are_promoted_as_compiled() -> None:
    numbers, out = torch.tensor([3, 1, -2, 7], dtype=torch.int32), torch.zeros(16)
    halves = torch.tensor([1.0078125, 0.5, 3.0, -1.0], dtype=torch.bfloat16)
    _calculate[(1,)](numbers, halves, out)
    expected = (
        (numbers + halves.float()).bfloat16(),
        numbers * 0.5 - halves.float(),
        1 + numbers * numbers,
        torch.tensor([3, 2, 1, 4]),
    )
    assert torch.equal(out, torch.cat([each.float() for each in expected]))
