"""Products in whole numbers, as a CPU takes them with weights of 8 bits."""

from __future__ import annotations

import pytest
import torch

from engine.kernels.weights.integers import STEPS, IntegerWeight, integer_product, multiplies_integers

ROWS, DEPTH = 96, 200
needs_vnni = pytest.mark.skipif(not multiplies_integers(), reason="this CPU multiplies no bytes")


def _case(rows: int) -> tuple[torch.Tensor, IntegerWeight]:
    torch.manual_seed(rows)
    x = torch.randn(rows, DEPTH)
    x[:, 3] *= 50  # as some channels of real models
    return x, IntegerWeight.of(torch.randn(ROWS, DEPTH))


@needs_vnni
@pytest.mark.parametrize("rows", [1, 2, 16])
def test_only_the_rows_are_rounded(rows: int) -> None:
    """Each number of a row is off by at most half a level, so a product by the sum of the weights' sizes times that."""
    x, weight = _case(rows)
    exact = x.double() @ weight.restored().double().T
    most = x.abs().amax(-1, keepdim=True) / STEPS / 2 * weight.restored().abs().sum(-1)
    assert ((weight.linear(x) - exact).abs() <= 1.01 * most + 1e-5).all()


@needs_vnni
def test_a_row_has_the_same_bits_alone_and_among_others() -> None:
    x, weight = _case(16)
    together = weight.linear(x)
    assert all(torch.equal(weight.linear(x[row : row + 1])[0], together[row]) for row in range(16))
    assert torch.equal(weight.linear(x[:5]), together[:5])


@needs_vnni
def test_the_largest_numbers_do_not_saturate() -> None:
    """A CPU that adds pairs of products in 16 bits would cut these off."""
    values = torch.full((ROWS, DEPTH), 127, dtype=torch.int8)
    out = integer_product(torch.ones(2, DEPTH), values, torch.ones(ROWS))
    assert torch.allclose(out, torch.full_like(out, 127.0 * DEPTH))


@needs_vnni
def test_a_row_of_zeros_stays_one() -> None:
    x, weight = _case(2)
    x[1] = 0
    assert not weight.linear(x)[1].any()
