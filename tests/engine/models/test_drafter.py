"""The DFlash drafter against the reference beside this file; ``test_dflash_package`` has many rounds of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.kv_cache.cache import Cache
from engine.loading.checkpoint import load_drafter
from engine.models.dflash.modules import DFlashDrafter
from tests.engine.checkpoints import FULL, SLIDING, drafter_config, write_drafter
from tests.engine.conftest import CPU, TinyPair, no_progress
from tests.engine.models.reference_drafter import ReferenceDrafter

SLACK = 16


def new_cache(drafter: DFlashDrafter) -> Cache:
    return Cache(drafter.config.layers, 4096, SLACK, torch.float32, CPU)


@torch.inference_mode()
def test_without_context(dense_pair: TinyPair) -> None:
    reference = ReferenceDrafter(dense_pair.drafter_config, dense_pair.drafter_weights)
    block = torch.randn(16, 64, generator=torch.Generator().manual_seed(5))
    expected = reference.hidden(torch.zeros(0, 2 * 64), block)
    actual = dense_pair.drafter.hidden(block, new_cache(dense_pair.drafter))
    torch.testing.assert_close(actual, expected, atol=1e-4, rtol=0)


@torch.inference_mode()
def test_drafting_leaves_the_context_alone(dense_pair: TinyPair) -> None:
    drafter, cache = dense_pair.drafter, new_cache(dense_pair.drafter)
    drafter.ingest(torch.randn(16, 2 * 64, generator=torch.Generator().manual_seed(6)), cache)
    before = [(layer.k.clone(), layer.v.clone()) for layer in cache.layers]
    first = drafter.draft(dense_pair.target, 7, 16, cache)
    second = drafter.draft(dense_pair.target, 7, 16, cache)
    assert cache.length == 16 and first.ids.tolist() == second.ids.tolist()
    for layer, (k, v) in zip(cache.layers, before, strict=True):
        assert torch.equal(layer.k, k) and torch.equal(layer.v, v)


@pytest.mark.parametrize("own_scale", [None, 1.0, 2.5])
@torch.inference_mode()
def test_draft_is_the_argmax_of_capped_logits(own_scale: float | None, dense_pair: TinyPair, tmp_path: Path) -> None:
    """Anchor and masks, scaled once; row j proposes position j, without a shift; the first row proposes nothing."""
    changes = {} if own_scale is None else {"input_embedding_scale": own_scale}
    config = drafter_config([SLIDING, FULL], [0, 2], 3, **changes)
    reference = ReferenceDrafter(config, write_drafter(tmp_path, config, seed=3))
    target, drafter = dense_pair.target, load_drafter(tmp_path, dense_pair.target, no_progress)
    features = torch.randn(12, 2 * 64, generator=torch.Generator().manual_seed(8))
    cache = new_cache(drafter)
    drafter.ingest(features, cache)
    draft = drafter.draft(target, 7, 9, cache)
    table = target.embed_tokens.weight
    block = table[[7] + [4] * 8] * (64**0.5 if own_scale is None else own_scale)
    logits = reference.hidden(features, block)[1:] @ table.T
    probabilities = (30 * torch.tanh(logits / 30)).softmax(dim=-1)
    assert draft.ids.tolist() == probabilities.argmax(dim=-1).tolist()
    torch.testing.assert_close(draft.probabilities, probabilities.max(dim=-1).values, atol=1e-4, rtol=0)
