"""Which format is chosen, and what is said of it: asked for, as stored, or the best that fits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from engine import load
from engine.commands import EngineOptions, WeightChoice, WeightFormat
from engine.decoding.decoder import GPU_PREFILL_CHUNK, LEAST_PREFILL_CHUNK
from engine.errors import DeviceFailure, Option, UsageFailure
from engine.hub.pairs import KNOWN_PAIRS, PairFolders
from engine.hub.sizes import CONTEXTS, FILE, size_of
from engine.lab.bench.sizes import sizes
from engine.loading import memory_plan, weight_choice
from engine.loading.pair_loader import fitting_format
from engine.loading.weight_choice import WeightPlan, choose_weights
from support.checkpoints import FULL, SLIDING, random_target
from support.packed_checkpoints import FP8_CONFIG, as_fp8, write_packed
from tests.engine.conftest import CPU, TinyPair
from tests.engine.models.pre_norm import write_target

CUDA = torch.device("cuda", 0)
"""Only its kind is asked."""
MIXTURE = "google/gemma-4-26B-A4B-it"
VOCABULARY, HIDDEN = 65_536, 64

Free = Callable[[int], None]


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> Free:
    """Sets what a GPU has free, in bytes."""

    def have(nbytes: int) -> None:
        for module in (memory_plan, weight_choice):
            monkeypatch.setattr(module, "available_memory", lambda device: nbytes)
        monkeypatch.setattr("engine.loading.pair_loader.available_memory", lambda device: nbytes)

    return have


def chosen(folder: Path, weights: WeightChoice, device: torch.device, name: str = "a target") -> WeightPlan:
    options = EngineOptions(str(folder), weights=weights)
    return choose_weights(options, PairFolders(name, folder, None, None), 512, device)


@pytest.fixture
def in_fp8(tmp_path: Path) -> Path:
    write_packed(tmp_path, random_target([SLIDING, FULL], moe=True, seed=21), FP8_CONFIG, as_fp8, split=True)
    return tmp_path


@pytest.fixture
def untied(tmp_path: Path) -> Path:
    """A model whose head is a matrix of its own, with an embedding that counts."""
    write_target(tmp_path, "llama", vocab_size=VOCABULARY, hidden_size=HIDDEN)
    return tmp_path


def test_auto_takes_the_most_bits_that_fit(dense_pair: TinyPair, free: Free) -> None:
    folder = dense_pair.folder / "target"
    free(10**12)
    whole = chosen(folder, "auto", CUDA)
    assert (whole.plan.weights, whole.is_plain) == ("bf16", True)
    needed = {weights: _needed(folder, weights) for weights in ("bf16", "fp8", "int4")}
    assert needed["bf16"] > needed["fp8"] > needed["int4"]
    for weights in ("fp8", "int4"):
        free(needed[weights])
        found = chosen(folder, "auto", CUDA)
        assert found.plan.weights == weights and not found.is_plain
        said = found.describe()
        assert said.startswith(f"{weights.upper()}: ") and "free on the GPU; bf16 would need " in said
    free(needed["int4"] - 1)
    tight = chosen(folder, "auto", CUDA).plan
    assert tight.chunk == LEAST_PREFILL_CHUNK and "prompts in pieces of 512" in tight.describe()
    free(tight.allocated + tight.reserve - 1)
    with pytest.raises(DeviceFailure, match="doesn't fit in INT4"):
        chosen(folder, "auto", CUDA)  # its embedding is its head


def test_an_embedding_of_its_own_goes_to_the_machine_s_memory_last(
    untied: Path, free: Free, monkeypatch: pytest.MonkeyPatch
) -> None:
    free(10**12)
    ways = [
        memory_plan.plan_memory(untied, None, 512, CUDA, weights="int4", chunk=chunk, embedding_on_host=on_host)
        for on_host in (False, True)
        for chunk in (GPU_PREFILL_CHUNK, LEAST_PREFILL_CHUNK)
    ]
    table = VOCABULARY * HIDDEN * 2
    assert [plan.on_host for plan in ways] == [0, 0, table, table]
    assert {plan.target_bytes + plan.on_host for plan in ways} == {ways[0].target_bytes}
    _whole, small, apart, both = (plan.allocated + plan.reserve for plan in ways)
    free(small)
    assert chosen(untied, "auto", CUDA).plan.on_host == 0
    assert small > apart > both
    free(apart)
    plan = chosen(untied, "auto", CUDA).plan
    assert (plan.on_host, plan.chunk) == (table, GPU_PREFILL_CHUNK)
    assert "the embedding, in the machine's memory" in plan.describe()
    free(both)
    assert (plan := chosen(untied, "auto", CUDA).plan).on_host == table and plan.chunk == LEAST_PREFILL_CHUNK
    free(both - 1)
    with pytest.raises(DeviceFailure, match="doesn't fit in INT4"):
        chosen(untied, "auto", CUDA)
    free(both)
    monkeypatch.setattr(memory_plan, "memory_bytes", lambda: table * memory_plan.HOST_SHARE - 1)
    with pytest.raises(DeviceFailure, match="doesn't fit in INT4"):
        chosen(untied, "auto", CUDA)


def _needed(folder: Path, weights: WeightFormat) -> int:
    plan = chosen(folder, weights, CUDA).plan
    return plan.allocated + plan.reserve


def test_what_was_asked_for_and_does_not_fit_names_what_would(dense_pair: TinyPair, free: Free) -> None:
    free(10**12)
    folder = dense_pair.folder / "target"
    fewer = memory_plan.plan_memory(folder, None, 512, CUDA, weights="fp8", chunk=LEAST_PREFILL_CHUNK)
    free(fewer.allocated + fewer.reserve)
    with pytest.raises(DeviceFailure, match="doesn't fit in bf16") as caught:
        chosen(folder, "bf16", CUDA)
    assert caught.value.advice[:2] == (Option("weights", "fp8"), Option("weights", "int4"))


def test_a_cpu_takes_floats_unless_asked(dense_pair: TinyPair) -> None:
    folder = dense_pair.folder / "target"
    assert chosen(folder, "auto", CPU).is_plain
    packed = chosen(folder, "fp8", CPU)
    assert packed.plan.weights == "fp8" and "slow on a CPU" in packed.describe()


def test_packed_files_are_used_as_they_are_or_unpacked(in_fp8: Path) -> None:
    found = chosen(in_fp8, "auto", CPU)
    assert (found.plan.weights, str(found.stored)) == ("fp8", "FP8") and found.describe().startswith("FP8: ")
    unpacked = chosen(in_fp8, "bf16", CPU)
    assert unpacked.describe().startswith("bf16, unpacked from FP8: ")
    assert unpacked.plan.target_bytes > 2 * found.plan.target_bytes
    with pytest.raises(UsageFailure, match="rounding them again to INT4 would only lose"):
        chosen(in_fp8, "int4", CPU)


def test_int4_from_floats_names_a_checkpoint_that_was_trained_for_it(
    dense_pair: TinyPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = dense_pair.folder / "target"
    assert "trained" not in chosen(folder, "int4", CPU).describe()  # of a shape that nobody published
    pair = next(pair for pair in KNOWN_PAIRS if pair.target == MIXTURE)
    monkeypatch.setattr(weight_choice, "pair_of", lambda folder: pair)
    assert f"{MIXTURE}-qat-q4_0-unquantized was trained for INT4" in chosen(folder, "int4", CPU).describe()
    assert "trained" not in chosen(folder, "int4", CPU, f"{MIXTURE}-qat-q4_0-unquantized").describe()
    assert "trained" not in chosen(folder, "fp8", CPU).describe()


def test_a_pair_that_is_not_here_is_found_in_what_fits(free: Free, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.loading.pair_loader.is_here", lambda name: False)
    size = size_of(MIXTURE)
    assert size is not None
    for weights, gigabytes in (("bf16", 80), ("fp8", 48), ("int4", 24), (None, 8)):
        free(gigabytes * 10**9)
        assert fitting_format(EngineOptions(MIXTURE), 32_768, CUDA) == weights
    assert fitting_format(EngineOptions(MIXTURE), 32_768, CPU) is None
    assert fitting_format(EngineOptions(MIXTURE, weights="fp8"), 32_768, CPU) == "fp8"
    monkeypatch.setattr("engine.loading.pair_loader.is_here", lambda name: True)
    free(24 * 10**9)
    assert fitting_format(EngineOptions(MIXTURE), 32_768, CUDA) is None, "its files decide"


def test_sizes_are_those_of_the_plan() -> None:
    """``python -m engine.lab.bench.sizes`` writes them again."""
    found = sizes()
    assert found == json.loads(FILE.read_text("utf-8"))
    assert list(found[0]["caches"]) == [str(context) for context in CONTEXTS]


@pytest.mark.parametrize("weights", ["fp8", "int4"])
def test_the_bundled_pair_answers_in_few_bits(weights: WeightFormat) -> None:
    with load(device="cpu", weights=weights, time_rounds=False, max_context=256) as pair:
        assert pair.ready.dtype == weights
        plain, drafted = (pair.answer("what is 47 + 38?", speculation=on, max_new_tokens=12) for on in (False, True))
        assert plain == drafted and plain
