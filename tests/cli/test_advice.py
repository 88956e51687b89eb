"""What the engine advises, word for word as people read it: facts in the engine, flags and commands in front ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
import torch

from dflash_tui.cli.chat import chat
from dflash_tui.cli.commands.selftest import selftest
from dflash_tui.core.advice import FLAGS, as_command
from dflash_tui.core.source import events_only
from dflash_tui.sources import engine_source
from engine.commands import Ask, Close, EngineOptions, GenerationSettings, Message
from engine.decoding.cuda_graphs import captured
from engine.errors import EngineFailure
from engine.events import EngineError, Event
from engine.hub.fetching import Fetching
from engine.hub.pairs import KNOWN_PAIRS, find_pair
from engine.loading.checkpoint import pick_device, read_drafter_config
from engine.loading.memory_plan import plan_memory, plan_of
from engine.models.attention_backends import choose_backends
from engine.models.gemma4.config import Gemma4Config
from engine.models.packed import shape_of
from engine.models.registry import drafter_config_of, family_of
from tests.engine.published import published

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
TARGET, DRAFTER = "gemma-4-26B-A4B-it", "gemma-4-26B-A4B-it-DFlash"


def target() -> Gemma4Config:
    return Gemma4Config.from_json(published(TARGET))


@pytest.fixture(autouse=True)
def no_gpu_and_an_empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def drafter(tmp_path: Path) -> Callable[[dict[str, Any]], Path]:
    def write(changes: dict[str, Any]) -> Path:
        (tmp_path / "config.json").write_text(json.dumps({**published(DRAFTER), **changes}), encoding="utf-8")
        return tmp_path

    return write


def words_of(fail: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(EngineFailure) as caught:
        fail()
    return caught.value.in_words(as_command)


def test_no_gpu() -> None:
    words = ("No usable NVIDIA GPU: torch sees none.", "Check nvidia-smi, or use --device cpu.")
    assert words_of(lambda: pick_device("cuda")) == words


def test_an_attention_backend_that_cannot_be_had() -> None:
    message, hint = words_of(lambda: choose_backends("triton", target().attention, CPU, torch.bfloat16))
    assert message.startswith("--attention-backend triton is not possible: ")
    assert hint == "Use --attention-backend auto, or sdpa."


def test_a_step_that_cannot_be_recorded() -> None:
    def step() -> None:
        raise RuntimeError("it waits")

    message, hint = words_of(lambda: captured(step, CUDA, "draft"))
    assert message == "The GPU could not record a decoding step (draft): it waits"
    assert hint == "Decode without graphs: --attention-backend sdpa."


def test_another_architecture() -> None:
    _, hint = words_of(lambda: family_of({"text_config": {"model_type": "mamba"}}))
    assert hint.startswith("Name a Gemma 4, Llama, Qwen3, ")
    assert hint.endswith(" checkpoint, or run dflash-chat without a model for the bundled pair.")
    _, hint = words_of(lambda: drafter_config_of({"architectures": ["Eagle"]}))
    assert hint == "Name a DFlash drafter with --draft, for example z-lab/gemma-4-26B-A4B-it-DFlash."


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"hidden_size": 64}, "Name the target's own drafter with --draft, or go without one: --draft none."),
        ({"vocab_size": 1000}, "Name the target's own drafter with --draft."),
    ],
)
def test_a_drafter_of_another_target(
    changes: dict[str, Any], hint: str, drafter: Callable[[dict[str, Any]], Path]
) -> None:
    assert words_of(lambda: read_drafter_config(drafter(changes), target()))[1] == hint


def test_a_drafter_that_reads_layers_the_target_lacks(drafter: Callable[[dict[str, Any]], Path]) -> None:
    layers = {**published(DRAFTER)["dflash_config"], "target_layer_ids": [1, 99]}
    words = words_of(lambda: read_drafter_config(drafter({"dflash_config": layers}), target()))
    assert words[1] == "Name the target's own drafter with --draft."


@pytest.mark.parametrize(
    ("gigabytes", "hint"),
    [
        (60.0, "What would: dflash-chat google/gemma-4-12B-it (52.8 GB in fp32 with 8192 tokens)."),
        (
            9.0,
            "What would: dflash-chat HuggingFaceTB/SmolLM2-135M-Instruct (1.0 GB in fp32 with 8192 tokens).",
        ),
        (0.9, "The bundled pair would: dflash-chat without a model. Or use a machine with more memory."),
    ],
)
def test_a_machine_that_is_too_small(gigabytes: float, hint: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(published(TARGET)), encoding="utf-8")
    plan = plan_memory(tmp_path, None, 262_144, CPU)
    assert words_of(replace(plan, available=int(gigabytes * 1e9)).check)[1] == hint
    needed = plan.target_bytes + replace(plan, context=30_720).caches
    hint = words_of(replace(plan, available=needed).check)[1]
    smaller = "dflash-chat google/gemma-4-12B-it (52.8 GB in fp32 with 8192 tokens)"
    assert hint == f"What would: --context 30720 ({needed / 1e9:.1f} GB), {smaller}."


def test_a_card_that_is_too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another format, a shorter context and a smaller model, each with what it takes."""
    (tmp_path / "config.json").write_text(json.dumps(published(TARGET)), encoding="utf-8")
    plans = {
        weights: plan_of(
            shape_of(target(), torch.bfloat16, weights), None, 131_072, CUDA, weights, 32 * 10**9, device_rounds=True
        )
        for weights in ("bf16", "fp8", "int4")
    }
    message, hint = words_of(lambda: plans["bf16"].check((plans["fp8"], plans["int4"])))
    assert message.startswith("This pair doesn't fit in bf16: 50.5 GB of weights, 3.") and "32.0 GB free" in message
    assert hint.startswith(
        "What would: --weights fp8 (30.0 GB), --weights int4 (19.3 GB), dflash-chat google/gemma-4-12B-it ("
    )
    shorter = words_of(replace(plans["fp8"], available=29 * 10**9).check)[1]
    assert shorter.startswith("What would: --context ")


def test_models_that_are_not_here(tmp_path: Path) -> None:
    offline = Fetching(offline=True)
    assert words_of(lambda: find_pair("some/model", None, offline)) == (
        "some/model is not on this machine, and offline mode forbids to fetch it.",
        "Without --offline and HF_HUB_OFFLINE: dflash-chat pull some/model"
        "   (dflash-chat without a model runs the bundled pair)",
    )
    assert words_of(lambda: find_pair(None, "some/drafter", offline))[1] == (
        "Without --offline and HF_HUB_OFFLINE: dflash-chat pull some/drafter   (--draft none goes without a drafter)"
    )
    assert words_of(lambda: find_pair("google/gemma-4-E2B-it", None, offline))[1] == (
        f"Models with a drafter: {', '.join(pair.target for pair in KNOWN_PAIRS)}"
        "   (dflash-chat without a model runs the bundled pair)"
    )


def test_events_reach_front_ends_in_their_words() -> None:
    events: SimpleQueue[Event] = SimpleQueue()
    engine = engine_source(EngineOptions(device="cpu", max_context=64, time_rounds=False))(events_only(events.put))
    engine.start()
    engine.send(Ask(1, (Message("user", "word " * 100),), GenerationSettings()))
    told = iter(lambda: events.get(timeout=60), None)
    error = next(event for event in told if isinstance(event, EngineError))
    engine.send(Close())
    engine.join(60)
    assert error.turn == 1 and error.message.endswith("the context holds 64.")
    assert error.hint == "Start a new chat, ask something shorter, or make room for more: --context."


def test_flags_are_commands_and_options_the_engine_s() -> None:
    assert set(FLAGS.values()) <= {name for option in (*chat.params, *selftest.params) for name in option.opts}
    assert set(FLAGS) == {field.name for field in fields(EngineOptions)} - {"target", "time_rounds"}
