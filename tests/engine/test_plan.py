"""The memory plan: what it counts is what loading allocates, and what it suggests fits."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.cache import Cache
from engine.config import TargetConfig
from engine.decoder import Decoder
from engine.errors import DeviceFailure, WeightsFailure
from engine.plan import MemoryPlan, plan_memory
from tests.engine.conftest import CPU, TinyPair

CONFIGS = Path(__file__).parent / "configs"


def cache_size(cache: Cache) -> int:
    """Bytes of the cache, and of the snapshot that is kept of its rings."""
    tensors = [tensor for layer in cache.layers for tensor in (layer.k, layer.v)]
    tensors += [tensor for ring in cache.snapshot().rings if ring is not None for tensor in (ring.k, ring.v)]
    return sum(tensor.nbytes for tensor in tensors)


@pytest.fixture
def plan(dense_pair: TinyPair) -> MemoryPlan:
    return plan_memory(dense_pair.folder / "target", dense_pair.folder / "drafter", 2048, CPU)


@pytest.mark.parametrize("context", [100, 2048])
def test_it_counts_what_is_allocated(context: int, dense_pair: TinyPair) -> None:
    plan = plan_memory(dense_pair.folder / "target", dense_pair.folder / "drafter", context, CPU)
    models = (dense_pair.target, dense_pair.drafter)
    assert plan.weights == sum(parameter.nbytes for model in models for parameter in model.parameters())
    decoder = Decoder(*models, context)
    assert decoder.draft_cache is not None
    assert plan.caches == cache_size(decoder.cache) + cache_size(decoder.draft_cache)


def test_the_context_is_cut_to_the_model_s(dense_pair: TinyPair) -> None:
    for wanted in (None, 1 << 20):
        assert plan_memory(dense_pair.folder / "target", None, wanted, CPU).context == 4096


def test_a_wrong_drafter_is_known_before_anything_is_loaded(dense_pair: TinyPair, moe_pair: TinyPair) -> None:
    with pytest.raises(WeightsFailure, match="made for a target of 3 layers"):
        plan_memory(moe_pair.folder / "target", dense_pair.folder / "drafter", None, CPU)


def test_what_fits_to_the_byte_fits(plan: MemoryPlan) -> None:
    exact = replace(plan, available=plan.weights + plan.caches)
    exact.check()
    with pytest.raises(DeviceFailure):
        replace(exact, available=exact.available - 1).check()


def test_a_suggested_context_is_the_largest_that_fits(plan: MemoryPlan) -> None:
    half = replace(plan, context=1024)
    tight = replace(plan, available=plan.weights + half.caches)
    with pytest.raises(DeviceFailure, match="doesn't fit: 1 MB of weights") as caught:
        tight.check()
    assert "--context 1024" in caught.value.hint
    replace(tight, context=1024).check()


@pytest.mark.parametrize(
    ("gigabytes", "hint"),
    [(5, "bundled pair"), (30, "gemma-4-12B-it"), (53, "--context"), (50, "gemma-4-12B-it")],
)
def test_what_would_fit_instead_of_the_26b_model(gigabytes: int, hint: str, tmp_path: Path) -> None:
    config = json.loads((CONFIGS / "gemma-4-26B-A4B-it.config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config))
    layers = TargetConfig.from_json(config).layers
    cuda = torch.device("cuda", 0)  # only its kind is asked
    plan = MemoryPlan(layers, 262_144, 50_466_283_580, gigabytes * 1_000_000_000, cuda)
    with pytest.raises(DeviceFailure, match=r"doesn't fit: 50\.5 GB of weights") as caught:
        plan.check()
    assert hint in caught.value.hint
