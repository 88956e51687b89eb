"""The memory plan: what it counts is what loading allocates, and what it suggests fits."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from engine.commands import AttentionBackend
from engine.decoding.decoder import Decoder
from engine.decoding.round_launches import RoundLaunches
from engine.errors import DeviceFailure, Option, WeightsFailure
from engine.kernels.weights.host_products import HostProducts
from engine.kernels.weights.int8 import Int8Weight
from engine.kernels.weights.integers import ByteWeight
from engine.kernels.weights.kinds import bytes_of
from engine.kv_cache.cache import Cache
from engine.kv_cache.layer_cache import RingCache
from engine.loading import memory_plan as plan_module
from engine.loading.checkpoint import load_drafter
from engine.loading.memory_plan import NO_DRAFTING, Drafting, MemoryPlan, plan_memory, plan_of
from engine.loading.stored_format import StoredFormat
from engine.loading.work_memory import PIECE, work_bytes
from engine.models import attention_backends as backends
from engine.models.dflash import dspine_pass
from engine.models.dflash.weights import DraftWeights, hold_in_8_bits
from engine.models.drafter import DraftBinding, Drafter, RoundRows
from engine.models.gemma4.config import Gemma4Config
from engine.models.gemma4.mtp.draft_pass import AssistantDraftPass
from engine.models.packed import hold_in_fewer_bits, packed_weights
from support.checkpoints import VOCAB_SIZE
from support.eagle import write_eagle
from support.shapes import read_shape
from tests.engine.conftest import CPU, TinyPair, no_progress
from tests.engine.models.dspine import dspine_pair
from tests.engine.published import published

CUDA = torch.device("cuda", 0)
"""Only its kind is asked."""


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
    target, drafter = (sum(parameter.nbytes for parameter in model.parameters()) for model in models)
    assert (plan.target_bytes, plan.drafter_bytes, plan.drafting.nbytes) == (target, drafter, drafter)
    decoder = Decoder(*models, context)
    assert decoder.draft_cache is not None
    assert plan.caches == cache_size(decoder.cache) + cache_size(decoder.draft_cache)


@pytest.mark.parametrize("method", ["DFlash", "EAGLE-3"])
def test_it_counts_what_a_cpu_packs(method: str, dense_pair: TinyPair, tmp_path: Path) -> None:
    """8 bits, a copy of the head, keys and values in fp64; while it packs, floats beside what they become."""
    folders = dense_pair.folder / "target", dense_pair.folder / "drafter"
    drafter: Drafter = deepcopy(dense_pair.drafter)
    if method == "EAGLE-3":
        write_eagle(tmp_path, "speculators", VOCAB_SIZE, [0, 2])
        folders, drafter = (folders[0], tmp_path), load_drafter(tmp_path, dense_pair.target, no_progress)
    stored = StoredFormat("bf16", blocks="Q8_0")
    plain, plan = (plan_memory(*folders, 2048, CPU, in_fewer_bits=each) for each in (None, stored))
    target = deepcopy(dense_pair.target)
    floats = bytes_of(target)
    products = HostProducts("rounded rows", "rounded rows", "laid out")  # of a CPU that multiplies bytes, on any
    assert hold_in_fewer_bits(target, products) == "int8" and target.packed_head is not None
    assert plan.target_bytes == bytes_of(target) + target.packed_head.nbytes
    hold_in_8_bits(drafter, ByteWeight)
    assert plan.drafting.packed and plan.drafting.nbytes == bytes_of(drafter) < plain.drafting.nbytes
    decoder = Decoder(target, drafter, 2048)
    assert decoder.draft_cache is not None
    drafted = (
        cache_size(decoder.draft_cache) if method == "DFlash" else decoder.draft_cache.nbytes
    )  # hidden states, too
    assert plan.caches == cache_size(decoder.cache) + drafted > plain.caches
    assert plan.packing == sum(4 * weight.shape.numel() for weight in packed_weights(target))
    assert (
        plan.allocated
        == plan.target_bytes + plan.drafting.nbytes + plan.caches
        > plain.allocated - floats - plain.drafter_bytes
    )
    short = replace(plan, context=16, drafter=(), draftings=(NO_DRAFTING,))
    assert short.allocated == plan.target_bytes + plan.packing > floats
    replace(short, available=short.allocated).check()
    with pytest.raises(DeviceFailure):
        replace(short, available=short.allocated - 1).check()


@pytest.mark.parametrize("context", [100, 2048])
def test_it_counts_what_rounds_on_the_device_add(context: int, dense_pair: TinyPair) -> None:
    plan = plan_memory(dense_pair.folder / "target", dense_pair.folder / "drafter", context, CPU)
    assert (plan.device_rounds, plan.scratch, plan.drafting.head_in_8_bits) == (False, 0, False)
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
    assert (plan.device_rounds, plan.drafting.head_in_8_bits) == expected
    # Copies: weights are laid side by side, in bf16 as on a GPU.
    embedding = Int8Weight.of(dense_pair.target.head)
    beside, alone = (deepcopy(dense_pair.drafter).bfloat16() for _ in range(2))
    copies = DraftWeights.of(beside, in_8_bits=True)
    hold_in_8_bits(alone)
    packed = bytes_of(alone) + copies.context_kv.nbytes
    ways = [bytes_of(beside) + copies.nbytes + embedding.nbytes, packed + embedding.nbytes, packed]
    wanted = [*ways, bytes_of(beside), 0]
    found = [each.nbytes for each in plan.draftings]
    assert found == (ways if all(expected) else wanted[3:4] if drafts else wanted[4:])


def test_what_an_assistant_borrows_is_counted() -> None:
    """It keeps a row, lays the target's window in order, and has one way to be held."""
    shape = read_shape("26B-A4B", 6, "mtp")
    assert shape.drafter is not None
    with plan_module.META:
        target, drafter = (each.build().to(torch.bfloat16) for each in (shape.target, shape.drafter))
    target.prepare()
    drafter.prepare()
    decoder = Decoder(target, drafter, 4096)
    assert decoder.draft_cache is not None and decoder.draft_cache.nbytes == 2 * 2816
    drafts = RoundLaunches(decoder).drafter
    assert isinstance(drafts, AssistantDraftPass)
    laid = sum(part.nbytes for layer, keys in drafts._keys.items() if layer.window for part in (keys.k, keys.v))
    with_it, without = (
        plan_of(target, each, 4096, CUDA, "bf16", 80_000_000_000, device_rounds=True) for each in (shape.drafter, None)
    )
    assert with_it.draftings == (Drafting(bytes_of(drafter)),) and with_it.drafter_bytes == 2 * 419_711_236
    rows = plan_module.GPU_PREFILL_CHUNK * 2816 * 2  # the hidden states behind a piece of a prompt
    assert with_it.work - without.work == laid + drafts._scratch.nbytes + rows


class _Made(TorchDispatchMode):
    """Keeps all that operations make, views aside."""

    def __init__(self) -> None:
        super().__init__()
        self.tensors: list[torch.Tensor] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor) and out._base is None and not func.is_view:
            self.tensors.append(out)
        return out


def test_what_the_graphs_of_a_dspine_need_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made between its launches, and the pieces in which a GPU's memory is taken."""
    for launch in ("pick_candidates", "gate_messages", "inject_and_norm", "score_edges", "walk_edges"):
        monkeypatch.setattr(dspine_pass, launch, lambda *given: None)
    target, drafter, _ = dspine_pair(tmp_path)
    config = drafter.config
    cache = drafter.new_cache(Cache((), 64, 16, torch.float32, CPU), 64, 16, torch.float32, CPU)
    rows = RoundRows(*(torch.zeros(1, dtype=torch.int32) for _ in range(4)))
    features = torch.zeros(16, len(config.target_layer_ids) * config.hidden_size)
    bound = DraftBinding(features, torch.zeros(16, dtype=torch.int64), rows)
    drafts = drafter.draft_pass(target, cache, bound)
    with torch.inference_mode(), _Made() as made:
        drafts._pick(drafts._buffers.normed, tree=False)
    assert 0 <= sum(each.nbytes for each in made.tensors) - config.bytes_between(4) < 1024
    published = replace(config, rank=1024, message=512, hidden_size=5120)
    assert 6e6 < published.bytes_between(2) < 7e6
    assert work_bytes(target, published, 2, 0) - work_bytes(target, None, 2, 0) == 3 * PIECE


def test_a_drafter_gives_way_to_the_pair(plan: MemoryPlan) -> None:
    """First its copies, then its own bits, then the head's copy."""
    ways = (Drafting(1000, head_in_8_bits=True), Drafting(600, packed=True, head_in_8_bits=True), Drafting(500, True))
    on_device = replace(plan, device_rounds=True, draftings=ways)
    needed = plan.target_bytes + plan.caches + on_device.scratch
    chosen = [replace(on_device, available=needed + room).drafting for room in (1000, 999, 600, 599, 500)]
    assert chosen == [ways[0], ways[1], ways[1], ways[2], ways[2]]
    replace(on_device, available=needed + 500).check()
    with pytest.raises(DeviceFailure):
        replace(on_device, available=needed + 499).check()


def test_the_context_is_cut_to_the_model_s(dense_pair: TinyPair) -> None:
    for wanted in (None, 1 << 20):
        assert plan_memory(dense_pair.folder / "target", None, wanted, CPU).context == 4096


def test_a_wrong_drafter_is_known_before_anything_is_loaded(dense_pair: TinyPair, moe_pair: TinyPair) -> None:
    with pytest.raises(WeightsFailure, match="made for a target of 3 layers"):
        plan_memory(moe_pair.folder / "target", dense_pair.folder / "drafter", None, CPU)


def test_what_fits_to_the_byte_fits(plan: MemoryPlan) -> None:
    exact = replace(plan, available=plan.target_bytes + plan.drafter_bytes + plan.caches)
    exact.check()
    with pytest.raises(DeviceFailure):
        replace(exact, available=exact.available - 1).check()


def test_a_suggested_context_is_the_largest_that_fits(plan: MemoryPlan) -> None:
    half = replace(plan, context=1024)
    tight = replace(plan, available=plan.target_bytes + plan.drafter_bytes + half.caches)
    with pytest.raises(DeviceFailure, match="doesn't fit in bf16: 1 MB of weights") as caught:
        tight.check()
    assert caught.value.advice == (Option("max_context", 1024),)
    replace(tight, context=1024).check()


@pytest.mark.parametrize(
    ("gigabytes", "hint"),
    [
        (1.5, "bundled pair"),
        (5, "SmolLM2-135M-Instruct"),
        (30, "gemma-4-12B-it"),
        (53, "max_context"),
        (50, "gemma-4-12B-it"),
    ],
)
def test_what_would_fit_instead_of_the_26b_model(gigabytes: float, hint: str, tmp_path: Path) -> None:
    config = published("gemma-4-26B-A4B-it")
    (tmp_path / "config.json").write_text(json.dumps(config))
    layers = Gemma4Config.from_json(config).layers
    room = int(gigabytes * 1_000_000_000)
    size = 50_466_283_580
    plan = MemoryPlan(layers, (), 262_144, "bf16", size, 0, (NO_DRAFTING,), 0, room, CUDA, True, 262_144, 2816)
    with pytest.raises(DeviceFailure, match=r"50\.5 GB of weights, .* 34 MB to work with") as caught:
        plan.check()
    assert hint in caught.value.hint


def test_more_context_where_memory_allows(dense_pair: TinyPair) -> None:
    """Caches get half of what is left, never more than the model takes, never less than was asked for."""
    plan = plan_memory(dense_pair.folder / "target", dense_pair.folder / "drafter", 1024, CPU)
    assert plan.longest == 4096
    assert plan.roomier().context == 4096
    for context in (2048, 3072):
        room = plan.allocated - plan.state_bytes(1024) + 2 * plan.state_bytes(context)
        tight = replace(plan, available=room)
        assert tight.roomier().context == context
        assert tight.roomier().drafting == tight.drafting
    assert replace(plan, available=0).roomier().context == 1024
