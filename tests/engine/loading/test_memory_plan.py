"""The memory plan: what it counts is what loading allocates, and what it suggests fits."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.commands import AttentionBackend
from engine.decoding.decoder import Decoder
from engine.decoding.round_launches import RoundLaunches
from engine.errors import DeviceFailure, Option, WeightsFailure
from engine.kernels.weights.int8 import Int8Weight
from engine.kv_cache.cache import Cache
from engine.kv_cache.layer_cache import RingCache
from engine.loading import memory_plan as plan_module
from engine.loading.memory_plan import MemoryPlan, plan_memory
from engine.models import attention_backends as backends
from engine.models.dflash.weights import DraftWeights
from engine.models.gemma4.config import Gemma4Config
from tests.engine.conftest import CPU, TinyPair

CUDA = torch.device("cuda", 0)
"""Only its kind is asked."""
CONFIGS = Path(__file__).parents[1] / "configs"


def cache_size(cache: Cache) -> int:
    """Bytes of the cache, and of what a snapshot of it holds to restore from."""
    kept = [cell.cell_contents for restore in cache.snapshot().layers for cell in restore.__closure__ or ()]
    copies = [value for value in kept if isinstance(value, torch.Tensor)]
    assert len(copies) == 2 * sum(isinstance(layer, RingCache) for layer in cache.layers) > 0
    return sum(tensor.nbytes for layer in cache.attention for tensor in (layer.k, layer.v)) + sum(
        tensor.nbytes for tensor in copies
    )


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


@pytest.mark.parametrize("context", [100, 2048])
def test_it_counts_what_rounds_on_the_device_add(context: int, dense_pair: TinyPair) -> None:
    plan = plan_memory(dense_pair.folder / "target", dense_pair.folder / "drafter", context, CPU)
    assert (plan.device_rounds, plan.scratch, plan.draft_copy) == (False, 0, 0)
    # Copies: it lays weights side by side.
    launches = RoundLaunches(Decoder(deepcopy(dense_pair.target), deepcopy(dense_pair.drafter), context))
    assert launches.drafter is not None
    kept = [vars(rows._scratch).values() for rows in (launches.target, launches.drafter)]
    on_device = replace(plan, device_rounds=True)
    assert on_device.scratch == sum(tensor.nbytes for scratch in kept for tensor in scratch) > 0


@pytest.mark.parametrize(
    ("backend", "drafts", "expected"),
    [("auto", True, (True, True)), ("auto", False, (True, False)), ("sdpa", True, (False, False))],
)
def test_8_bit_copies_are_counted_where_rounds_draft_with_them(
    backend: AttentionBackend,
    drafts: bool,
    expected: tuple[bool, bool],
    dense_pair: TinyPair,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plan_module, "available_memory", lambda device: 80_000_000_000)
    monkeypatch.setattr(backends, "HAS_TRITON", True)
    monkeypatch.setattr(backends, "ROUNDS_LEAST_HEAD_DIM", 16)  # the tiny pair's heads are smaller than any real ones
    drafter = dense_pair.folder / "drafter" if drafts else None
    plan = plan_memory(dense_pair.folder / "target", drafter, 2048, CUDA, backend)
    assert (plan.device_rounds, plan.drafts_in_8_bits) == expected
    embedding = Int8Weight.of(dense_pair.target.head)
    # A copy: weights are laid side by side.
    copies = embedding.nbytes + DraftWeights.of(deepcopy(dense_pair.drafter), in_8_bits=True).nbytes
    assert plan.draft_copy == (copies if expected[1] else 0)


def test_8_bit_copies_are_left_out_rather_than_the_pair(plan: MemoryPlan) -> None:
    on_device = replace(plan, device_rounds=True, draft_copy=1000)
    needed = plan.weights + plan.caches + on_device.scratch
    with_room = replace(on_device, available=needed + 1000)
    assert with_room.drafts_in_8_bits
    tight = replace(with_room, available=needed + 999)
    assert not tight.drafts_in_8_bits
    replace(tight, available=needed).check()
    with pytest.raises(DeviceFailure):
        replace(tight, available=needed - 1).check()


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
    assert caught.value.advice == (Option("max_context", 1024),)
    replace(tight, context=1024).check()


@pytest.mark.parametrize(
    ("gigabytes", "hint"), [(5, "bundled pair"), (30, "gemma-4-12B-it"), (53, "max_context"), (50, "gemma-4-12B-it")]
)
def test_what_would_fit_instead_of_the_26b_model(gigabytes: int, hint: str, tmp_path: Path) -> None:
    config = json.loads((CONFIGS / "gemma-4-26B-A4B-it.config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config))
    layers = Gemma4Config.from_json(config).layers
    plan = MemoryPlan(layers, (), 262_144, 50_466_283_580, gigabytes * 1_000_000_000, CUDA, True, 0)
    with pytest.raises(DeviceFailure, match=r"50\.5 GB of weights and .* 34 MB to decode with") as caught:
        plan.check()
    assert hint in caught.value.hint
