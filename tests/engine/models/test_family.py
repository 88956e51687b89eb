"""A family is a folder and a line: one that lies in the tests goes wherever a checkpoint goes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import LlamaForCausalLM

from engine.commands import Ask, EngineOptions, GenerationSettings, Message
from engine.decoding.decoder import Decoder
from engine.errors import WeightsFailure
from engine.events import EngineReady, Event, Step, TurnFinished
from engine.hub.pairs import known_drafter
from engine.kv_cache.cache import Cache
from engine.loading.checkpoint import load_drafter, load_target, read_target_config
from engine.loading.memory_plan import plan_memory
from engine.models.dflash.modules import DFlashDrafter
from engine.models.registry import FAMILIES, family_of, register
from engine.models.target import TargetModel
from engine.runner import Runner
from engine.tokenization.tokenizer import AnswerStream, ChatTokenizer
from support.checkpoints import FULL, SLIDING, drafter_config, write_drafter
from support.reference_drafter import ReferenceDrafter
from support.shapes import random_pair, shape_of_checkpoint
from tests.engine.conftest import CPU, no_progress
from tests.engine.models.against_transformers import assert_same, assert_same_answers, their_answer
from tests.engine.models.plain_family import PLAIN, PlainTarget, write_plain_target
from tests.engine.small_decoders import prompt_ids, run_turn, settings

ROOT = Path(__file__).parents[3]
TAPS = [0, 2]


@dataclass(frozen=True)
class PlainPair:
    folder: Path
    reference: LlamaForCausalLM
    target: TargetModel
    drafter: DFlashDrafter
    drafter_weights: dict[str, Tensor]


@pytest.fixture(scope="module", autouse=True)
def _registered() -> Iterator[None]:
    register(PLAIN)
    yield
    FAMILIES.remove(PLAIN)


@pytest.fixture(scope="module")
def pair(_registered: None, tmp_path_factory: pytest.TempPathFactory) -> PlainPair:
    folder = tmp_path_factory.mktemp("plain")
    reference = write_plain_target(folder / "target")
    config = drafter_config([SLIDING, FULL], TAPS, 4, final_logit_softcapping=None)
    weights = write_drafter(folder / "drafter", config)
    target = load_target(folder / "target", CPU, no_progress)
    return PlainPair(folder, reference, target, load_drafter(folder / "drafter", target, no_progress), weights)


def test_it_computes_what_transformers_computes(pair: PlainPair) -> None:
    prompt = prompt_ids(30)
    assert_same(pair.target, pair.reference, torch.tensor(prompt_ids(40)), [1, 20, 16, 3], TAPS)
    assert_same_answers(pair.target, pair.drafter, prompt, their_answer(pair.reference, prompt, 48), 16)


@torch.inference_mode()
def test_a_drafter_reads_the_embedding_and_speaks_by_the_head(pair: PlainPair) -> None:
    """Two matrices here, without a scale."""
    ids = torch.tensor(prompt_ids(12))
    target_cache, cache = (
        Cache(layers, 64, 16, torch.float32, CPU) for layers in (pair.target.config.layers, pair.drafter.config.layers)
    )
    features = pair.target(ids, 0, target_cache, TAPS).features
    assert features is not None
    pair.drafter.ingest(features, cache)
    drafted = pair.drafter.draft(pair.target, 7, 8, cache)
    state = pair.reference.state_dict()
    config = json.loads((pair.folder / "drafter" / "config.json").read_text())
    block = state["model.embed_tokens.weight"][torch.tensor([7] + [4] * 7)]
    rows = ReferenceDrafter(config, pair.drafter_weights).hidden(features, block)[1:]
    best = (rows @ state["lm_head.weight"].T).softmax(dim=-1).max(dim=-1)
    assert torch.equal(drafted.ids, best.indices)
    torch.testing.assert_close(drafted.probabilities, best.values, atol=1e-4, rtol=1e-3)


def test_a_pair_answers_from_its_folders(pair: PlainPair) -> None:
    """Loaded, warmed up and asked as the program does it; the device would not run its rounds."""
    events: list[Event] = []
    options = EngineOptions(target=str(pair.folder / "target"), drafter=str(pair.folder / "drafter"), device="cpu")
    runner = Runner.load(options, events.append, lambda: False)
    assert runner is not None and isinstance(events[-1], EngineReady)
    said = []
    for turn, speculation in enumerate((False, True)):
        wanted = GenerationSettings(max_new_tokens=24, speculation=speculation, block_size=8)
        events.extend(runner.answer(Ask(turn, (Message("user", "Write a sort."),), wanted), list))
        assert isinstance(events[-1], TurnFinished) and events[-1].text
        steps = [event for event in events if isinstance(event, Step) and event.turn == turn]
        said.append([token.id for step in steps for token in step.emitted])
    prompt = runner.tokenizer.prompt([Message("user", "Write a sort.")], thinking=False)
    assert said[0] == said[1] == their_answer(pair.reference, prompt.ids, 24)


def test_conversations_have_the_family_s_format(pair: PlainPair) -> None:
    tokenizer = ChatTokenizer(pair.folder / "target")
    talk = [Message("user", "Hi"), Message("assistant", "Yes?"), Message("user", "Sort it")]
    rendered = "".join(map(tokenizer.piece, tokenizer.prompt(talk, thinking=False).ids))
    assert rendered.replace("▁", " ") == "[user]Hi[end][assistant]Yes?[end][user]Sort it[end][assistant]"
    stream = AnswerStream(tokenizer)
    channels = [stream.push(token)[1] for token in (200, 46, 107, 200, 47, 200, 100, 200)]
    assert channels == ["answer", "control", "control", "thought", "control", "answer", "control", "answer"]


def test_its_memory_and_its_floor_count_both_matrices(pair: PlainPair) -> None:
    plan = plan_memory(pair.folder / "target", None, 128, CPU)
    assert plan.target_bytes == 4 * sum(parameter.numel() for parameter in pair.reference.parameters())
    assert not plan.device_rounds
    shape = shape_of_checkpoint(pair.folder / "target", pair.folder / "drafter")
    target, drafter = random_pair(shape, CPU)
    assert isinstance(target, PlainTarget) and drafter is not None
    answer = run_turn(Decoder(target, drafter, 128), prompt_ids(9), settings(max_new_tokens=8))
    assert len(answer.ids) == 8


def test_unknown_models_are_named_beside_the_known(tmp_path: Path) -> None:
    with pytest.raises(WeightsFailure, match=r"'mamba' model; the engine runs Gemma 4 \(.*\); plain \(plain\)"):
        family_of({"model_type": "mamba"})
    (tmp_path / "config.json").write_text('{"model_type": "plain", "hidden_size": 2816, "num_hidden_layers": 30}')
    assert known_drafter(tmp_path) is None, "shaped as a Gemma 4 that has one"
    with pytest.raises(WeightsFailure, match="vocab_size"):
        read_target_config(tmp_path)


def test_no_other_room_names_a_family() -> None:
    """Beside its folder and the registry, a family's identifiers stand nowhere."""
    models = ROOT / "engine" / "models"
    exempt = (
        models / "gemma4",
        models / "registry.py",
        models / "drafter_formats.py",
        ROOT / "engine" / "lab" / "demo",
    )
    paths = [path for room in ("engine", "dflash_tui") for path in (ROOT / room).rglob("*.py")]
    paths = [path for path in paths if not any(path.is_relative_to(each) for each in exempt)]
    assert len(paths) > 150
    assert [path for path in paths if re.search(r"gemma4(?![-_]\d)", path.read_text("utf-8"), re.IGNORECASE)] == []
