"""Checkpoints that are whole to look at, and wrong: named while they load, before anybody waits for an answer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from queue import SimpleQueue

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from engine.commands import Ask, Close, EngineOptions, GenerationSettings, Message
from engine.errors import WeightsFailure
from engine.events import EngineError, Event, Notice, TurnFinished
from engine.hub.pairs import BUNDLED_PAIR
from engine.service import EngineService, load_runner


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    shutil.copytree(BUNDLED_PAIR, tmp_path / "pair")
    return tmp_path / "pair"


def load(pair: Path) -> list[Event]:
    told: list[Event] = []
    assert load_runner(EngineOptions(str(pair), device="cpu", time_rounds=False), told.append) is not None
    return told


@pytest.mark.parametrize(
    ("part", "value"), [("target", float("nan")), ("target", float("inf")), ("drafter", float("nan"))]
)
def test_weights_that_are_no_numbers(pair: Path, part: str, value: float) -> None:
    path = pair / part / "model.safetensors"
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    weights = load_file(path)
    name = next(name for name in weights if name.endswith("layernorm.weight"))
    weights[name].view(-1)[0] = torch.tensor(value)
    save_file(weights, path, metadata=metadata)
    with pytest.raises(WeightsFailure, match="no numbers") as failure:
        load(pair)
    assert name.rpartition("layers.")[2] in str(failure.value) and "download" in failure.value.hint.lower()


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{% for", "TemplateSyntaxError"),
        ("{{ messages.nothing.at_all }}", "UndefinedError"),
        ("{{ raise_exception('no') }}", "no"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("{{ messages[0].content }}{{ '\\ud800' }}", "UnicodeEncodeError"),
        ("", "leaves out"),
        ("the same for everybody", "leaves out"),
    ],
)
def test_chat_templates_that_are_broken(pair: Path, template: str, why: str) -> None:
    (pair / "target" / "chat_template.jinja").write_text(template)
    with pytest.raises(WeightsFailure, match="chat template") as failure:
        load(pair)
    assert why in str(failure.value)


def test_the_tokenizer_s_end_is_one_too(pair: Path) -> None:
    """As fine-tunes have it: the config names the base model's end, the tokenizer that of a turn."""
    target = pair / "target"
    (target / "generation_config.json").write_text('{"eos_token_id": []}')
    for name, change in (("config.json", {"eos_token_id": 1}), ("tokenizer_config.json", {"eos_token": "<turn|>"})):
        (target / name).write_text(json.dumps({**json.loads((target / name).read_text()), **change}))
    runner = load_runner(EngineOptions(str(pair), device="cpu", time_rounds=False), lambda _: None)
    assert runner is not None and runner.decoder.target.config.stop_token_ids == (1, 106)
    *_, finished = runner.answer(Ask(1, (Message("user", "hello"),), GenerationSettings(max_new_tokens=60)), list)
    assert isinstance(finished, TurnFinished) and finished.reason == "stop"


def test_a_model_without_a_known_end_says_so(pair: Path) -> None:
    target = pair / "target"
    (target / "generation_config.json").unlink()
    for name, key, value in (("config.json", "eos_token_id", []), ("tokenizer_config.json", "eos_token", None)):
        content = json.loads((target / name).read_text())
        content.get("text_config", {}).pop(key, None)
        (target / name).write_text(json.dumps({**content, key: value}))
    notices: SimpleQueue[Event] = SimpleQueue()
    service = EngineService(
        EngineOptions(str(pair), device="cpu", time_rounds=False),
        lambda event: notices.put(event) if isinstance(event, Notice | EngineError) else None,
    )
    service.start()
    notice = notices.get(timeout=60)
    assert isinstance(notice, Notice) and "No token is known that ends" in notice.message
    assert "generation_config.json" in notice.advice
    service.send(Close())
    service.join(60)


POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0123456789abcdef' * 4}\nsize 15000000\n"


@pytest.mark.parametrize(
    "name",
    [
        "target/model.safetensors",
        "drafter/model.safetensors",
        "target/config.json",
        "drafter/config.json",
        "target/tokenizer.json",
        "target/tokenizer_config.json",
        "target/generation_config.json",
        "target/chat_template.jinja",
    ],
)
@pytest.mark.parametrize("link", [False, True])
def test_files_that_stand_for_others_are_named(pair: Path, name: str, link: bool) -> None:
    (pair / name).unlink()
    if link:
        (pair / name).symlink_to("../../blobs/0123")
    else:
        (pair / name).write_text(POINTER)
    with pytest.raises(WeightsFailure) as failure:
        load(pair)
    said = str(failure.value)
    assert ("is a link to ../../blobs/0123, where nothing is" if link else "is a pointer of git-lfs") in said
    assert Path(name).name in said and ("again" if link else "git lfs pull") in failure.value.hint
