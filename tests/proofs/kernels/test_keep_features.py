"""A row that waits for the drafter is kept behind the others."""

from __future__ import annotations

import pytest
import torch

from engine.kernels.round.keep_features import BLOCK, keep_features, reference_keep_features
from engine.kernels.toolchain.jit import INTERPRETED
from tests.kernels.tensors import number

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")


@pytest.mark.parametrize("columns", [96, BLOCK, 2 * BLOCK + 32])
@pytest.mark.parametrize(("waiting", "width"), [(0, 1), (7, 1), (15, 1), (16, 1), (2000, 1), (3, 0)])
def test_it_equals_the_reference(columns: int, waiting: int, width: int) -> None:
    """Also where no more fit, and in a round after the end: then nothing changes."""
    features = torch.randn(17, columns, generator=torch.Generator().manual_seed(0)).bfloat16()
    expected = features.clone()
    reference_keep_features(expected, waiting, live=width > 0)
    assert torch.equal(expected, features) == (waiting >= 16 or width == 0)
    keep_features(features, number(waiting), number(width))
    assert torch.equal(features, expected)
