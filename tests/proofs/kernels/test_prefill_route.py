"""Routing of many rows, and what stands around its products, against their definitions."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from engine.kernels.prefill.route import Routing, reference_routing, route_many
from engine.kernels.toolchain.jit import INTERPRETED

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")


def scores_of(n: int, experts: int) -> Tensor:
    """Rounded, so that many are equal."""
    return (torch.randn(n, experts, generator=torch.Generator().manual_seed(n)) * 4).round() / 4


def assert_equal(found: Routing, wanted: Routing) -> None:
    for part in ("ids", "places", "ends"):
        assert torch.equal(getattr(found, part), getattr(wanted, part)), part
    torch.testing.assert_close(found.weights, wanted.weights, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize(
    ("n", "experts", "top_k"), [(1, 8, 8), (5, 12, 3), (33, 128, 8), (600, 16, 2)], ids=lambda value: str(value)
)
def test_equals_the_definition(n: int, experts: int, top_k: int) -> None:
    """One row, odd numbers, more than a tile of rows, more tiles than are counted at a time; ties in all."""
    scale = torch.rand(experts, generator=torch.Generator().manual_seed(9)) + 0.5
    scores = scores_of(n, experts)
    wanted = reference_routing(scores, top_k, scale)
    assert wanted.places.flatten().sort().values.tolist() == list(range(n * top_k))
    assert_equal(route_many(scores, n, top_k, scale), wanted)


def test_fewer_scores_than_rows_are_repeated() -> None:
    scale, scores = torch.ones(16), scores_of(7, 16)
    wanted = reference_routing(scores.repeat(6, 1)[:40], 4, scale)
    assert_equal(route_many(scores, 40, 4, scale), wanted)


def test_scores_that_are_no_numbers_reach_no_place_outside() -> None:
    """A damaged model says nonsense; it doesn't write into memory that isn't its own."""
    found = route_many(torch.full((40, 12), float("nan")), 40, 3, torch.ones(12))
    assert int(found.ids.min()) >= 0 and int(found.ids.max()) < 12
    assert int(found.places.min()) >= 0 and int(found.places.max()) < 120
