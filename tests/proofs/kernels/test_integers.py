"""Products in whole numbers, as a CPU takes them with weights of 8 bits."""

from __future__ import annotations

import pytest
import torch

from engine.kernels.weights.integers import (
    FEW_ROWS,
    STEPS,
    ByteWeight,
    IntegerWeight,
    LaidOutWeight,
    multiplies_integers,
)

ROWS, DEPTH = 96, 200
pytestmark = pytest.mark.skipif(not multiplies_integers(), reason="this CPU multiplies no bytes")
OF_EITHER_KIND = pytest.mark.parametrize("kind", [IntegerWeight, LaidOutWeight])
Kind = type[IntegerWeight]


def _case(rows: int, kind: Kind) -> tuple[torch.Tensor, IntegerWeight]:
    torch.manual_seed(rows)
    x = torch.randn(rows, DEPTH)
    x[:, 3] *= 50  # as some channels of real models
    weight = kind.of(torch.randn(ROWS, DEPTH))
    assert isinstance(weight, kind) and weight.shape == (ROWS, DEPTH)
    return x, weight


@pytest.mark.parametrize("rows", [1, 2, 16])
@OF_EITHER_KIND
def test_only_the_rows_are_rounded(rows: int, kind: Kind) -> None:
    """Each number of a row is off by at most half a level, so a product by the sum of the weights' sizes times that."""
    x, weight = _case(rows, kind)
    exact = x.double() @ weight.restored().double().T
    most = x.abs().amax(-1, keepdim=True) / STEPS / 2 * weight.restored().abs().sum(-1)
    assert ((weight.linear(x) - exact).abs() <= 1.01 * most + 1e-5).all()


@OF_EITHER_KIND
def test_a_row_has_the_same_bits_alone_and_among_others(kind: Kind) -> None:
    x, weight = _case(16, kind)
    together = weight.linear(x)
    assert all(torch.equal(weight.linear(x[row : row + 1])[0], together[row]) for row in range(16))
    assert torch.equal(weight.linear(x[:5]), together[:5])


@OF_EITHER_KIND
def test_the_largest_numbers_do_not_saturate(kind: Kind) -> None:
    """A CPU that adds pairs of products in 16 bits would cut these off."""
    out = kind.of(torch.full((ROWS, DEPTH), 127.0)).linear(torch.ones(2, DEPTH))
    assert torch.allclose(out, torch.full_like(out, 127.0 * DEPTH))


@pytest.mark.parametrize("depth", [192, 200])
@pytest.mark.parametrize("rows", [1, FEW_ROWS, FEW_ROWS + 1, 16])
def test_a_drafter_s_few_rows_are_rounded_to_bf16(rows: int, depth: int) -> None:
    """More of them, and depths that PyTorch's product for such rows would read past the end of, take whole numbers."""
    torch.manual_seed(rows)
    x, weight = torch.randn(rows, depth), ByteWeight.of(torch.randn(ROWS, depth))
    assert isinstance(weight, ByteWeight)
    exact, product = x @ weight.restored().T, weight.linear(x)
    in_bf16 = rows <= FEW_ROWS and depth == 192
    assert torch.equal(product, product.bfloat16().float()) is in_bf16
    assert (product - exact).norm() < (5e-3 if in_bf16 else 1e-4) * exact.norm()
    assert torch.equal(product, IntegerWeight(weight.values, weight.scales).linear(x)) is not in_bf16
