"""Products in whole numbers, as a CPU takes them with weights of 8 bits."""

from __future__ import annotations

import pytest
import torch

from engine.kernels.weights.integers import STEPS, IntegerWeight, LaidOutWeight, multiplies_integers

ROWS, DEPTH = 96, 200
pytestmark = [
    pytest.mark.skipif(not multiplies_integers(), reason="this CPU multiplies no bytes"),
    pytest.mark.parametrize("kind", [IntegerWeight, LaidOutWeight]),
]
Kind = type[IntegerWeight]


def _case(rows: int, kind: Kind) -> tuple[torch.Tensor, IntegerWeight]:
    torch.manual_seed(rows)
    x = torch.randn(rows, DEPTH)
    x[:, 3] *= 50  # as some channels of real models
    weight = kind.of(torch.randn(ROWS, DEPTH))
    assert isinstance(weight, kind) and weight.shape == (ROWS, DEPTH)
    return x, weight


@pytest.mark.parametrize("rows", [1, 2, 16])
def test_only_the_rows_are_rounded(rows: int, kind: Kind) -> None:
    """Each number of a row is off by at most half a level, so a product by the sum of the weights' sizes times that."""
    x, weight = _case(rows, kind)
    exact = x.double() @ weight.restored().double().T
    most = x.abs().amax(-1, keepdim=True) / STEPS / 2 * weight.restored().abs().sum(-1)
    assert ((weight.linear(x) - exact).abs() <= 1.01 * most + 1e-5).all()


def test_a_row_has_the_same_bits_alone_and_among_others(kind: Kind) -> None:
    x, weight = _case(16, kind)
    together = weight.linear(x)
    assert all(torch.equal(weight.linear(x[row : row + 1])[0], together[row]) for row in range(16))
    assert torch.equal(weight.linear(x[:5]), together[:5])


def test_the_largest_numbers_do_not_saturate(kind: Kind) -> None:
    """A CPU that adds pairs of products in 16 bits would cut these off."""
    out = kind.of(torch.full((ROWS, DEPTH), 127.0)).linear(torch.ones(2, DEPTH))
    assert torch.allclose(out, torch.full_like(out, 127.0 * DEPTH))


def test_a_row_of_zeros_stays_one(kind: Kind) -> None:
    x, weight = _case(2, kind)
    x[1] = 0
    assert not weight.linear(x)[1].any()
