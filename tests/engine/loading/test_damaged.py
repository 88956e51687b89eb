"""Checkpoints that are whole to look at, and wrong: named while they load, before anybody waits for an answer."""

from __future__ import annotations

import shutil
from pathlib import Path
from queue import SimpleQueue

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from engine.commands import Close, EngineOptions
from engine.errors import WeightsFailure
from engine.events import Event, Notice
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


def test_a_folder_that_holds_a_pair(pair: Path) -> None:
    assert any(getattr(event, "drafter", None) == str(pair / "drafter") for event in load(pair))


def test_a_pair_s_drafter_without_its_config_is_named(pair: Path) -> None:
    (pair / "drafter" / "config.json").unlink()
    with pytest.raises(WeightsFailure, match="drafter holds no config"):
        load(pair)


def test_who_loads_a_target_alone_is_told(pair: Path) -> None:
    notices: SimpleQueue[Notice] = SimpleQueue()

    def take(event: Event) -> None:
        if isinstance(event, Notice):
            notices.put(event)

    service = EngineService(EngineOptions(str(pair / "target"), device="cpu", time_rounds=False), take)
    service.start()
    notice = notices.get(timeout=60)
    assert "No drafter is known" in notice.message and notice.advice == "the option drafter names one."
    service.send(Close())
    service.join(60)
