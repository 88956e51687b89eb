"""Attention of many rows against its reference, over every way that tiles, windows and chunks can meet."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from engine.kernels.prefill.attention import ChunkTiles, chunk_attention
from engine.kernels.reference.attention import reference_attention
from engine.kernels.toolchain.jit import INTERPRETED
from tests.kernels.tensors import noise

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter")

TILES = ChunkTiles(queries=16, keys=16, warps=4, stages=2)


def inputs(n: int, keys: int, heads: int, kv_heads: int, head_dim: int, dtype: torch.dtype) -> list[Tensor]:
    q = noise(n, heads, head_dim, seed=1, dtype=dtype)
    return [q, *(noise(kv_heads, keys, head_dim, seed=seed, dtype=dtype) for seed in (2, 3))]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("window", [None, 1, 9, 16, 40])
@pytest.mark.parametrize(("n", "keys"), [(1, 1), (1, 50), (16, 16), (17, 61), (40, 40), (40, 83)])
def test_equals_the_reference(n: int, keys: int, window: int | None, causal: bool) -> None:
    q, k, v = inputs(n, keys, 2, 1, 16, torch.float32)
    how = {"causal": causal, "window": window, "scale": 0.3}
    actual = chunk_attention(q, k, v, **how, tiles=TILES)  # type: ignore[arg-type]
    torch.testing.assert_close(actual, reference_attention(q, k, v, **how), atol=1e-5, rtol=1e-5)  # type: ignore[arg-type]


@pytest.mark.parametrize(("heads", "kv_heads", "head_dim"), [(4, 2, 128), (8, 1, 64), (2, 2, 256), (2, 1, 512)])
def test_heads_and_groups(heads: int, kv_heads: int, head_dim: int) -> None:
    q, k, v = inputs(20, 45, heads, kv_heads, head_dim, torch.float32)
    expected = reference_attention(q, k, v, causal=True, window=30, scale=0.1)
    actual = chunk_attention(q, k, v, causal=True, window=30, scale=0.1)
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("window", [None, 9])
def test_sinks_take_their_part(window: int | None) -> None:
    """Once, also where nothing else is seen in a tile of keys."""
    q, k, v = inputs(20, 45, 4, 2, 32, torch.float32)
    how = {"causal": True, "window": window, "scale": 0.3, "sinks": 6 * noise(4, seed=4)}
    actual = chunk_attention(q, k, v, **how, tiles=TILES)  # type: ignore[arg-type]
    torch.testing.assert_close(actual, reference_attention(q, k, v, **how), atol=1e-5, rtol=1e-5)  # type: ignore[arg-type]


def test_views_into_a_longer_cache() -> None:
    """Keys as a layer's cache gives them out: a part of each head's rows, between others that must not be read."""
    q, k, v = inputs(20, 45, 4, 2, 32, torch.float32)
    stores = [torch.full((2, 100, 32), float("nan")) for _ in range(2)]
    views = [store[:, 30:75] for store in stores]
    for view, rows in zip(views, (k, v), strict=True):
        view.copy_(rows)
    expected = reference_attention(q, k, v, causal=True, window=16, scale=0.2)
    actual = chunk_attention(q, *views, causal=True, window=16, scale=0.2, tiles=TILES)
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-5)
