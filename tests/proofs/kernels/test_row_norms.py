"""What lies between two products against its definition, in Triton's interpreter."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from engine.kernels.decode.experts.shared_expert import after_experts, reference_after_experts
from engine.kernels.decode.norm import (
    NormStyle,
    add_and_norm,
    after_feed_forward,
    reference_add_and_norm,
)
from engine.kernels.reference.joins import (
    FeedForwardJoin,
    reference_after_feed_forward,
)
from engine.kernels.toolchain.jit import INTERPRETED
from tests.kernels.tensors import FP32_AND_BF16

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

EPS = 1e-6
HIDDEN = pytest.mark.parametrize("hidden", [40, 64])


@dataclass
class Given:
    """Random tensors of one hidden size and dtype."""

    hidden: int
    dtype: torch.dtype

    def __post_init__(self) -> None:
        self._generator = torch.Generator().manual_seed(self.hidden)

    def noise(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self._generator)

    def rows(self) -> Tensor:
        return self.noise(16, self.hidden).to(self.dtype)

    def weight(self) -> Tensor:
        return (1 + 0.3 * self.noise(self.hidden)).to(self.dtype)

    def sums(self, *shape: int) -> Tensor:
        return self.noise(*shape, self.hidden)


def assert_rounded_alike(actual: Tensor, expected: Tensor) -> None:
    """fp32: the same sums. bf16: the same roundings, but where a sum in another order fell just beside an edge."""
    if actual.dtype is torch.float32:
        torch.testing.assert_close(actual, expected, atol=5e-6, rtol=1e-5)
    else:
        assert (actual != expected).float().mean() < 0.02
        torch.testing.assert_close(actual, expected, atol=2**-6, rtol=2**-6)


@FP32_AND_BF16
@HIDDEN
@pytest.mark.parametrize("of_pairs", [torch.float32, torch.bfloat16, None])
def test_after_feed_forward(hidden: int, dtype: torch.dtype, of_pairs: torch.dtype | None) -> None:
    given = Given(hidden, dtype)
    scalar = torch.tensor([0.7], dtype=dtype)
    weights = FeedForwardJoin(given.weight(), given.weight(), given.weight(), scalar, given.weight())
    partials, x, pairs = given.sums(2, 16), given.rows(), None if of_pairs is None else given.sums(16, 4).to(of_pairs)
    expected = reference_after_feed_forward(partials, pairs, x, weights, EPS)
    normed, features = torch.zeros_like(x), torch.full((16, 3 * hidden), 7.0, dtype=dtype)
    after_feed_forward(partials, pairs, x, weights, EPS, normed, features[:, hidden : 2 * hidden])
    assert_rounded_alike(x, expected[0])
    assert_rounded_alike(normed, expected[1])
    assert torch.equal(features[:, hidden : 2 * hidden], x)
    assert (features[:, :hidden] == 7).all() and (features[:, 2 * hidden :] == 7).all()


@FP32_AND_BF16
@HIDDEN
@pytest.mark.parametrize("style", ["gemma", "qwen"])
@pytest.mark.parametrize("residual", [True, False])
def test_add_and_norm(hidden: int, dtype: torch.dtype, style: NormStyle, residual: bool) -> None:
    given = Given(hidden, dtype)
    partials, x, weight = given.sums(2, 16), given.rows() if residual else None, given.weight()
    expected, expected_normed = reference_add_and_norm(partials, x, weight, EPS, style)
    normed = given.rows()
    add_and_norm(partials, x, weight, EPS, normed, style)
    assert_rounded_alike(normed, expected_normed)
    if x is not None:
        assert_rounded_alike(x, expected)


@FP32_AND_BF16
@pytest.mark.parametrize("style", ["gemma", "qwen"])
def test_after_experts_one_of_which_all_rows_share(dtype: torch.dtype, style: NormStyle) -> None:
    given = Given(40, dtype)
    partials, pairs, x, before = given.sums(3, 16), given.sums(16, 4).to(dtype), given.rows(), given.rows()
    gate, weight = given.noise(1, 40).to(dtype), given.weight()
    expected, expected_normed = reference_after_experts(partials, pairs, before, gate, x, weight, EPS, style)
    normed, features = before.clone(), torch.full((16, 80), 7.0, dtype=dtype)
    untouched = x[9:].clone()
    after_experts(partials, pairs, gate, x, weight, EPS, normed, style, features[:, 40:], max_rows=9)
    assert_rounded_alike(x[:9], expected[:9])
    assert_rounded_alike(normed[:9], expected_normed[:9])
    assert torch.equal(features[:9, 40:], x[:9]) and (features[:, :40] == 7).all() and (features[9:] == 7).all()
    assert torch.equal(x[9:], untouched) and torch.equal(normed[9:], before[9:])
