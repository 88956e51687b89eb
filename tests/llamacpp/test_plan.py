"""What llama.cpp is told to do, by the files and the machine; and what is said where nothing can be done."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from queue import Queue

import pytest

from dflash_tui.core.source import Happening
from dflash_tui.llamacpp.failures import ILLEGAL_ON_WINDOWS, reason_of
from dflash_tui.llamacpp.machine import Machine
from dflash_tui.llamacpp.plan import LEAST_CONTEXT, USUAL_CONTEXT, LlamaPlan, cache_bytes, make_plan
from dflash_tui.llamacpp.source import LlamaSource
from engine.commands import Close, EngineOptions
from engine.errors import DeviceFailure, EngineFailure, UsageFailure, WeightsFailure
from engine.events import EngineError, EngineReady, Notice
from engine.files.gguf_header import read_header
from tests.llamacpp.headers import write_gguf

ROOMY = Machine(64 << 30, version="1.2")
DFLASH = {"architecture": "dflash", "target_hidden_size": 64, "block_size": 16, "target_layers": [2, 4]}


@pytest.fixture(autouse=True)
def _all_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def plan(target: Path, drafter: Path | None = None, machine: Machine = ROOMY, **options: object) -> LlamaPlan:
    given = {"context": None, "device": "auto", "drafts": True} | options
    return make_plan(target, drafter, machine, given["context"], given["device"], drafts=given["drafts"])  # type: ignore[arg-type]


def test_it_drafts_with_what_is_there(tmp_path: Path) -> None:
    target = write_gguf(tmp_path / "model.gguf")
    write_gguf(tmp_path / "a-dflash-for-another.gguf", **(DFLASH | {"target_hidden_size": 128}))
    alone = plan(target)
    assert (alone.drafting, alone.drafter_name) == ("ngram-simple", "lookup in the text so far")
    assert "--spec-type ngram-simple" in alone.line() and "--spec-draft-n-max" not in alone.line()

    write_gguf(tmp_path / "model-DFlash.gguf", **DFLASH)
    beside = plan(target)
    assert (beside.drafting, beside.draft_length, beside.drafter_name) == ("draft-dflash", 15, "model-DFlash")
    assert beside.line().endswith("--spec-type draft-dflash -md model-DFlash.gguf --spec-draft-n-max 15")

    small = write_gguf(tmp_path / "small.gguf")
    assert plan(target, small).drafting == "draft-simple"
    none = plan(target, drafts=False)
    assert (none.drafting, none.drafter_name) == ("none", None) and "--spec" not in none.line()
    (tmp_path / "other").mkdir()
    own = write_gguf(tmp_path / "other" / "mtp-inside.gguf", "qwen35", nextn_predict_layers=1)
    assert plan(own).drafting == "draft-mtp" and plan(own).drafter is None
    assistant = write_gguf(
        tmp_path / "of-google.gguf", "gemma4-assistant", embedding_length=32, embedding_length_out=64
    )
    assert plan(target, assistant).drafting == "draft-mtp"


def test_a_drafter_found_beside_the_target_is_left_out_where_memory_lacks(tmp_path: Path) -> None:
    target, drafter = write_gguf(tmp_path / "model.gguf"), write_gguf(tmp_path / "model-DFlash.gguf", **DFLASH)
    with_room = plan(target)
    few = replace(ROOMY, memory=(512 << 20) + read_header(target).num_bytes + cache_bytes(with_room.model, 4096))
    lesser = plan(target, machine=few)
    assert lesser.drafting == "ngram-simple" and any("left out" in remark for remark in lesser.remarks)
    with pytest.raises(DeviceFailure, match="are free"):
        plan(target, drafter, replace(few, memory=512 << 20))


def test_context_is_what_the_model_takes_and_the_memory_has(tmp_path: Path) -> None:
    long = write_gguf(tmp_path / "long.gguf", context_length=1 << 20, block_count=40, embedding_length=4096)
    per_token = cache_bytes(read_header(long), 1)
    assert plan(long).context == USUAL_CONTEXT
    assert plan(long, context=100_000).context == 100_000
    tight = Machine((512 << 20) + (64 << 10) + 9000 * per_token)
    assert plan(long, machine=tight).context == USUAL_CONTEXT // 4
    assert plan(write_gguf(tmp_path / "short.gguf", context_length=512)).context == 512
    with pytest.raises(DeviceFailure, match=f"{LEAST_CONTEXT} tokens"):
        plan(long, machine=Machine(512 << 20))
    with pytest.raises(UsageFailure, match="4096 tokens at most"):
        plan(write_gguf(tmp_path / "model.gguf"), context=5000)


def test_windows_cost_no_more_than_they_span(tmp_path: Path) -> None:
    keys = {"attention__head_count_kv": [2, 2, 2, 1], "attention__key_length": 32, "attention__value_length": 32}
    sliding = keys | {"attention__sliding_window": 100, "attention__sliding_window_pattern": [True, True, True, False]}
    narrow = sliding | {"attention__key_length_swa": 16, "attention__value_length_swa": 16}
    full, part, small = (
        cache_bytes(read_header(write_gguf(tmp_path / f"{number}.gguf", **each)), 1000)
        for number, each in enumerate((keys, sliding, narrow))
    )
    assert full == 2 * 64 * 1000 * (2 + 2 + 2 + 1)
    assert part == 2 * 64 * (3 * 2 * 100 + 1000)
    assert small == 2 * (32 * 3 * 2 * 100 + 64 * 1000)


def test_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, card = write_gguf(tmp_path / "model.gguf"), replace(ROOMY, gpus=("A card",))
    assert plan(target, machine=card).gpus and "-ngl" not in plan(target, machine=card).line()
    assert "-ngl 0" in plan(target, machine=card, device="cpu").line()
    with pytest.raises(DeviceFailure, match="sees no GPU"):
        plan(target, device="cuda")
    monkeypatch.setattr("dflash_tui.llamacpp.plan.GPU_PLACES", {"AMD": str(target)})
    (remark,) = plan(target).remarks
    assert "AMD" in remark and "vulkan" in remark


@pytest.mark.parametrize(
    ("drafter", "words"),
    [
        (DFLASH | {"target_hidden_size": 128}, "states of 128 numbers, the target's have 64"),
        (DFLASH | {"target_layers": [2, 5]}, "reads layer 5, the target has 4"),
        (DFLASH | {"vocabulary": 11}, "knows 11 tokens, the target 10"),
        ({"vocabulary": 11}, "knows 11 tokens, the target 10"),
    ],
)
def test_a_drafter_for_another_target(tmp_path: Path, drafter: dict[str, object], words: str) -> None:
    target = write_gguf(tmp_path / "model.gguf")
    with pytest.raises(WeightsFailure, match=words):
        plan(target, write_gguf(tmp_path / "drafter.gguf", **drafter))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("architecture", "vocabulary", "words"),
    [("dflash", 10, "is a drafter"), ("clip", 0, "sees images"), ("llama", 0, "without a vocabulary")],
)
def test_files_that_nobody_can_talk_to(tmp_path: Path, architecture: str, vocabulary: int, words: str) -> None:
    with pytest.raises(WeightsFailure, match=words):
        plan(write_gguf(tmp_path / "model.gguf", architecture, vocabulary))


@pytest.mark.parametrize(
    ("code", "line", "kind", "words"),
    [
        (-signal.SIGILL, "", DeviceFailure, "another processor"),
        (ILLEGAL_ON_WINDOWS, "", DeviceFailure, "another processor"),
        (-signal.SIGKILL, "", DeviceFailure, "ended from outside"),
        (1, "0.00 E load: unknown model architecture: 'gemma9'", WeightsFailure, "architecture gemma9"),
        (1, "0.00 E tensor 'a' data is not within the file bounds", WeightsFailure, "cut short or damaged"),
        (1, "0.00 E load: missing tensor 'blk.0.x'", WeightsFailure, "missing tensor 'blk.0.x'"),
        (1, "0.00 E ggml_vulkan: ErrorOutOfDeviceMemory", DeviceFailure, "memory is too small"),
        (-signal.SIGABRT, "terminate called: std::bad_alloc", DeviceFailure, "memory is too small"),
        (1, "0.00 E couldn't bind HTTP server socket, port: 80", DeviceFailure, "no free port"),
        (1, "0.00 E the draft model has another vocab", WeightsFailure, "doesn't fit the target"),
        (-signal.SIGSEGV, "0.00 E it was going so well", EngineFailure, "signal 11.*it was going so well"),
    ],
)
def test_why_it_died(code: int, line: str, kind: type[EngineFailure], words: str) -> None:
    failure = reason_of(code, ["0.00 I loading", line])
    with pytest.raises(kind, match=words):
        raise failure
    assert failure.hint


def test_a_file_that_is_not_there_is_said_before_llama_cpp_is_asked_for(tmp_path: Path) -> None:
    """Nobody installs a package for it."""
    told: Queue[Happening] = Queue()
    source = LlamaSource(EngineOptions(target=str(tmp_path / "no.gguf"), drafter=None), told.put)
    source.start()
    failure = next(event for event in iter(lambda: told.get(timeout=30), None) if isinstance(event, EngineError))
    assert "There is no file" in failure.message and "no.gguf" in failure.message
    source.send(Close())


def test_a_file_without_a_chat_template_is_told_once(tmp_path: Path) -> None:
    """A base model loads and decodes well, and rambles."""
    base, told = write_gguf(tmp_path / "base.gguf"), list[Happening]()
    source = LlamaSource(EngineOptions(target=str(base)), told.append)
    ready = EngineReady("base", None, "cpu", "F16", 1, 4096, 0.1)
    for _ in range(2):  # the second after llama.cpp was started again
        source.hear(ready, plan(base), 1.0)
    assert [type(event) for event in told] == [EngineReady, Notice]
    notice = told[1]
    assert isinstance(notice, Notice) and "base.gguf has no chat template" in notice.message and notice.advice
