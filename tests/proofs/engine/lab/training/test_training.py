"""Training passes against the engine decoding a text alone, and the whole pipeline at toy size."""

from __future__ import annotations

import json
import random
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
import torch
from safetensors.torch import load_file

from dflash_tui.cli.main import main
from engine.decoding.decoder import Decoder
from engine.errors import UsageFailure
from engine.kv_cache.cache import Cache
from engine.lab.training import trainer
from engine.lab.training.blocks import block_visibility, draw_blocks
from engine.lab.training.generation import Sampler, generate, speculate
from engine.lab.training.passes import BatchedDrafter, BatchedTarget, PackedDraftPass, PackedPass
from engine.lab.training.pipeline import Pipeline, TrainingPlan
from engine.lab.training.rows import causal_within_documents
from engine.lab.training.shape import DrafterShape, taps_of
from engine.loading.checkpoint import load_drafter, load_target
from engine.models.target import TargetModel
from support.checkpoints import VOCAB_SIZE
from tests.engine.conftest import CPU, TinyPair, no_progress
from tests.engine.models import gpt_oss, qwen3_5
from tests.engine.models.pre_norm import LLAMA3, write_target
from tests.engine.small_decoders import run_turn, settings
from tests.proofs.engine.lab.packed_rows import FIRST_TEXT_ID, packed_rows

MASK = 4


def prompts() -> list[list[int]]:
    rng = random.Random(5)
    return [[rng.randrange(FIRST_TEXT_ID, VOCAB_SIZE) for _ in range(rng.randrange(3, 40))] for _ in range(4)]


@pytest.fixture(params=["gemma4 with experts", "llama", "qwen3_moe"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> TargetModel:
    if request.param.startswith("gemma4"):
        pair: TinyPair = request.getfixturevalue("moe_pair")
        return deepcopy(pair.target)
    write_target(tmp_path, request.param, rope=LLAMA3)
    return load_target(tmp_path, CPU, no_progress)


@pytest.mark.parametrize(("family", "what"), [(gpt_oss, "attention has sinks"), (qwen3_5, "its layers recur")])
def test_what_training_would_compute_otherwise_is_refused(family: ModuleType, what: str, tmp_path: Path) -> None:
    family.write_target(tmp_path)
    with pytest.raises(UsageFailure, match=what):
        BatchedTarget(load_target(tmp_path, CPU, no_progress))


def test_many_texts_at_once_say_what_each_says_alone(target: TargetModel) -> None:
    decoder = Decoder(deepcopy(target), None, 256)
    alone = []
    for prompt in prompts():
        decoder.clear()
        alone.append(run_turn(decoder, prompt, settings(max_new_tokens=24)).ids)
    together = generate(target, prompts(), 24, Sampler(0, 0, CPU))
    assert [answer.ids for answer in together] == alone
    stops = target.config.stop_token_ids
    assert all(answer.ended == (answer.ids[-1] in stops) for answer in together)


def test_packed_texts_have_the_features_they_have_alone(target: TargetModel) -> None:
    rows, layers, taps = packed_rows(1), target.config.attention, (0, len(target.config.layers) - 2)
    begin, length = int((rows.positions[0] == 0).nonzero()[1]), int((rows.documents[0] == 1).sum())
    with torch.no_grad():
        alone = target(rows.ids[0, begin : begin + length], 0, Cache(layers, 256, 256, torch.float32, CPU), taps)
        packed = PackedPass(rows.positions, layers, partial(causal_within_documents, rows))
        found = BatchedTarget(target)(rows.ids, packed, taps).features
    assert found is not None and alone.features is not None
    torch.testing.assert_close(found[0, begin : begin + length], alone.features, atol=1e-4, rtol=1e-4)


def test_blocks_predict_the_token_at_their_own_position() -> None:
    rows = packed_rows()
    blocks = draw_blocks(rows, 32, 16, MASK, torch.Generator().manual_seed(0))
    for row in range(2):
        assert len(set(blocks.anchors[row].tolist())) == 32
        for number, anchor in enumerate(blocks.anchors[row].tolist()):
            labels = blocks.labels[row].view(32, 16)[number]
            weights = blocks.weights[row].view(32, 16)[number]
            inputs = blocks.inputs[row].view(32, 16)[number]
            used = int((weights > 0).sum())
            assert rows.supervised[row, anchor] and weights[0] == 0 and used >= 1
            assert inputs[0] == rows.ids[row, anchor] and (inputs[1:] == MASK).all()
            assert torch.equal(labels[1 : used + 1], rows.ids[row, anchor + 1 : anchor + used + 1])
            assert rows.supervised[row, anchor : anchor + used + 1].all()
            end = anchor + used + 1
            assert used == 15 or end == 256 or not rows.supervised[row, end] or rows.positions[row, end] == 0


def test_a_drafter_is_trained_on_what_it_sees_when_it_drafts(moe_pair: TinyPair) -> None:
    """The mask of the training step against the engine's drafter over its own cache, sliding layers and full ones."""
    target, drafter = deepcopy(moe_pair.target), deepcopy(moe_pair.drafter)
    rows, config = packed_rows(1), drafter.config
    blocks = draw_blocks(rows, 12, 16, MASK, torch.Generator().manual_seed(3))
    with torch.no_grad():
        packed = PackedPass(rows.positions, target.config.attention, partial(causal_within_documents, rows))
        features = BatchedTarget(target)(rows.ids, packed, config.target_layer_ids).features
        assert features is not None
        visible = partial(block_visibility, rows, blocks, 16)
        drafting = PackedDraftPass(rows.positions, blocks.positions, config.layers, visible)
        embedded = drafter.embed(target, blocks.inputs)
        trained = BatchedDrafter(drafter)(features, embedded, drafting).view(12, 16, -1)
        for number, anchor in enumerate(blocks.anchors[0].tolist()):
            begin = anchor - int(rows.positions[0, anchor])
            cache = Cache(config.states, 512, 256, torch.float32, CPU)
            moe_pair.drafter.ingest(features[0, begin:anchor], cache)
            alone = moe_pair.drafter.hidden(embedded.view(12, 16, -1)[number], cache)
            torch.testing.assert_close(alone, trained[number], atol=1e-4, rtol=1e-4)


def test_speculation_changes_nothing(moe_pair: TinyPair) -> None:
    target, drafter = deepcopy(moe_pair.target), deepcopy(moe_pair.drafter)
    plain = generate(target, prompts(), 24, Sampler(0, 0, CPU))
    for block in (2, 16):
        fast = speculate(target, drafter, prompts(), 24, Sampler(0, 0, CPU), block)
        assert [answer.ids for answer in fast] == [answer.ids for answer in plain]


TOY = TrainingPlan(
    shape=DrafterShape(layers=1, nbytes=120_000),
    prompts=8,
    held_out=2,
    answer_tokens=24,
    batch=8,
    steps=6,
    rows=2,
    row_length=256,
    anchors=4,
    report_every=4,
)


class Stopped(Exception):
    """What a test stops a run with."""


def toy_prompts(folder: Path) -> Path:
    path = folder / "prompts.txt"
    words = ("sun", "moon", "tree", "bread", "sea", "coffee", "train", "chess", "music", "winter")
    lines = [f"What is {word}?" for word in words]
    lines.append(json.dumps({"prompt": "Write a loop.", "domain": "code"}))
    path.write_text("\n".join(lines), "utf-8")
    return path


def test_who_is_stopped_goes_on_and_ends_with_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what was saved now and then, and by what Ctrl-C saves itself."""
    monkeypatch.setattr(trainer, "TOLD_EVERY", 1)
    target = tmp_path / "target"
    write_target(target, "llama")
    asked = toy_prompts(tmp_path)

    def run(folder: Path, stop_at: int | None = None, by: type[BaseException] = Stopped) -> list[int]:
        heard: list[int] = []

        def told(phase: str, done: int, total: int, remark: str) -> None:
            if phase == "drafter":
                heard.append(done)
                if done == stop_at:
                    raise by

        Pipeline(target, "toy", folder, TOY, CPU, told, asked).run()
        return heard

    run(tmp_path / "whole")
    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(trainer, "SAVE_SECONDS", 0.0)
        run(tmp_path / "stopped", 2)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "stopped", 4, KeyboardInterrupt)
    assert run(tmp_path / "stopped")[0] == 5
    whole, stopped = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "stopped"))
    assert all(torch.equal(whole[name], stopped[name]) for name in whole)
    report = json.loads((tmp_path / "stopped" / "report.json").read_text())
    history = report["training"]["history"]
    assert [each["step"] for each in history] == [4, 6] and history[0]["loss"] > 0
    assert all(each["held_out_loss"] > 0 for each in history)
    assert report["held_out"] == {"prompts": 1, "same_text": 1}
    assert len(report["acceptance"]["all"]["by_position"]) == 15
    assert (tmp_path / "whole" / "model.safetensors").stat().st_size <= 120_000
    model = load_target(target, CPU, no_progress)
    load_drafter(tmp_path / "whole", model, no_progress)
    with pytest.raises(UsageFailure, match="another plan: steps"):
        Pipeline(target, "toy", tmp_path / "whole", replace(TOY, steps=7), CPU, lambda *_: None, asked)


def test_a_drafter_learns(tmp_path: Path) -> None:
    """A target that says little is soon guessed."""
    write_target(tmp_path / "target", "llama")
    asked = toy_prompts(tmp_path)
    plan = replace(TOY, steps=18, report_every=6, anchors=16)
    report = Pipeline(tmp_path / "target", "toy", tmp_path / "out", plan, CPU, lambda *_: None, asked).run()
    losses = [each["loss"] for each in report["training"]["history"]]
    assert losses[-1] < 0.8 * losses[0]


def test_the_command_says_what_is_wrong_with_prompts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_target(tmp_path / "target", "llama")
    for content, what in (('{"prompt": 3', "line 1 is no prompt"), ("\n \n", "holds no prompt")):
        path = tmp_path / "prompts.txt"
        path.write_text(content)
        arguments = [str(tmp_path / "target"), "-o", str(tmp_path / "out"), "--prompts", str(path), "--device", "cpu"]
        assert main(["train", *arguments]) == 2
        assert what in capsys.readouterr().err


@pytest.mark.parametrize(
    ("depth", "taps"), [(36, [1, 9, 17, 25, 33]), (30, [1, 8, 14, 20, 27]), (5, [1, 2]), (4, [2]), (1, [0])]
)
def test_taps_are_those_of_published_drafters(depth: int, taps: list[int]) -> None:
    assert taps_of(depth) == taps
