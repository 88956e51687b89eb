"""Triton's interpreter, made fast, still refuses what it refused and promotes types as the compiler does."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.kernels.toolchain.jit import INTERPRETED, tl, triton

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

if INTERPRETED:
    from triton.runtime.errors import InterpreterError
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

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

    @triton.jit
    def _move(numbers: tl.tensor, out: tl.tensor, width: tl.tensor) -> None:
        row, column = tl.arange(0, 4)[:, None], tl.arange(0, 8)[None, :]
        mask = (row != 1) & (column < width)
        block = tl.load(numbers + row * 8 + column, mask=mask, other=0)
        tl.store(out + row * 8 + column, block - tl.load(numbers) * 2, mask=column < 7)
        beside = tl.load(numbers - 3 + column + 8 * row, mask=mask, other=-5)
        tl.store(out + 32 + row * 8 + column, -(beside // 3) % 4 | 1)
        tl.store(out + 64 + tl.arange(0, 4), 1.5, mask=tl.arange(0, 4) > 0)


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


def test_blocks_are_broadcast_masked_and_divided_as_compiled() -> None:
    """Towards zero, remainders with the sign of what is divided; what is not loaded is what stands in for it."""
    numbers = torch.arange(-40, 40, dtype=torch.int32)
    out = torch.full((68,), 99.0)
    _move[(1,)](numbers[8:], out, 6)
    rows, columns = torch.arange(4)[:, None], torch.arange(8)[None, :]
    mask = (rows != 1) & (columns < 6)
    block = torch.where(mask, numbers[8:40].view(4, 8), 0) + 64
    assert torch.equal(out[:32].view(4, 8)[:, :7], block[:, :7].float())
    assert out[:32].view(4, 8)[:, 7].tolist() == [99.0] * 4
    beside = torch.where(mask, numbers[5:37].view(4, 8), -5)
    negated = -torch.div(beside, 3, rounding_mode="trunc")
    assert torch.equal(out[32:64].view(4, 8), (torch.fmod(negated, 4) | 1).float())
    assert out[64:].tolist() == [99.0, 1.5, 1.5, 1.5]


@pytest.mark.parametrize("shapes", [((16, 64), (64, 32)), ((2, 8, 32), (2, 32, 16))])
def test_products_are_added_up_in_order(shapes: tuple[tuple[int, ...], ...], ordered_sums: None) -> None:
    """One after the other, as by a loop over the depth: so a product is that of its parts, whatever they are."""
    a, b = (np.random.default_rng(seed).standard_normal(shape, np.float32) for seed, shape in enumerate(shapes))
    total = np.ones((*a.shape[:-1], b.shape[-1]), np.float32)
    found = InterpreterBuilder.create_dot(None, *(TensorHandle(each, tl.float32) for each in (a, b, total))).data
    for depth in range(a.shape[-1]):
        total += a[..., depth, None] * b[..., None, depth, :]
    assert np.array_equal(found, total)
