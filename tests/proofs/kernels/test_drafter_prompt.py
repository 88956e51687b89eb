"""A prompt's features taken in by the drafter with kernels, against its modules, in Triton's interpreter."""

from __future__ import annotations

import pytest
import torch

from engine.kernels.toolchain.jit import INTERPRETED
from engine.kv_cache.cache import Cache
from support.shapes import random_pair, read_shape

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

PIECES = (5, 64, 20)
"""The window is 48, so rings hold 63 positions: the second piece is longer, the third stands around their end."""


@torch.inference_mode()
@pytest.mark.parametrize(
    ("dtype", "allowed", "sizes"), [(torch.float32, 1e-5, PIECES), (torch.bfloat16, 1e-3, PIECES[:1])]
)
def test_equals_the_modules(
    dtype: torch.dtype, allowed: float, sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    device = torch.device("cpu")
    _, drafter = random_pair(read_shape("tiny"), device)
    assert drafter is not None and {layer.window for layer in drafter.config.layers} == {48, None}
    drafter = drafter.to(dtype)
    generator = torch.Generator().manual_seed(1)
    pieces = [torch.randn(size, drafter.fc.in_features, generator=generator).to(dtype) for size in sizes]
    caches = [Cache(drafter.config.layers, 128, 16, dtype, device) for _ in range(2)]
    for cache, backend in zip(caches, ("sdpa", "triton"), strict=True):
        monkeypatch.setattr(drafter, "attention_backend", backend)
        for features in pieces:
            drafter.ingest(features, cache)
        assert cache.length == cache.written == sum(sizes)
    for theirs, ours in zip(*(cache.layers for cache in caches), strict=True):
        for one, other in ((ours.k, theirs.k), (ours.v, theirs.v)):
            assert other.abs().sum() > 0
            assert (one.float() - other.float()).norm() <= allowed * other.float().norm()
