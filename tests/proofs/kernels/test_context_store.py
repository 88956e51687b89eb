"""One launch that stores context in every layer of a drafter, against one launch for each."""

from __future__ import annotations

import pytest
import torch

from engine.kernels.decode.attention.context_store import ContextStores, store_context
from engine.kernels.decode.attention.rope import norm_rope_store
from engine.kernels.reference.rope import inverse_frequencies
from engine.kernels.shared.heads import HeadNorms
from engine.kernels.toolchain.jit import INTERPRETED
from engine.kv_cache.cache import Cache
from engine.layer_config import AttentionConfig
from engine.models.dflash.config import DFlashConfig
from support.checkpoints import FULL, SLIDING, drafter_config
from tests.kernels.tensors import CPU

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

LAYERS: tuple[AttentionConfig, ...] = DFlashConfig.from_json(drafter_config([SLIDING, FULL, SLIDING], [0], 1)).layers


@pytest.mark.parametrize(
    ("start", "count", "dtype"),
    [(0, 9, torch.float32), (30, 5, torch.bfloat16), (77, 1, torch.bfloat16), (40, 0, torch.float32)],
)
def test_equals_a_launch_for_each_layer_bit_for_bit(start: int, count: int, dtype: torch.dtype) -> None:
    """Rings of the sliding layers wrap; rows from ``count`` on go nowhere."""
    generator = torch.Generator().manual_seed(1)
    size = LAYERS[0].head_dim
    norms = [
        HeadNorms(*torch.randn(2, size, generator=generator).to(dtype), 1e-6, rounded_first=True, norm_values=False)
        for _ in LAYERS
    ]
    frequencies = inverse_frequencies(LAYERS[0].rope, CPU)
    ours, theirs = (Cache(LAYERS, 96, 16, dtype, CPU) for _ in range(2))
    stores = ContextStores(ours.layers, norms)
    projected = torch.randn(16, stores.columns, generator=generator).to(dtype)
    where, rows = (torch.tensor([number], dtype=torch.int32) for number in (start, count))

    store_context(projected, stores, frequencies, where, rows)
    parts = projected.chunk(len(LAYERS), dim=1)
    for part, norm, layer in zip(parts, norms, theirs.layers, strict=True):
        norm_rope_store(part.contiguous(), norm, frequencies, layer.k, layer.v, where, rows)

    for mine, other in zip(ours.layers, theirs.layers, strict=True):
        assert torch.equal(mine.k, other.k) and torch.equal(mine.v, other.v)
        assert bool(mine.k.any()) == (count > 0)
