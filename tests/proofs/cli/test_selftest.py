"""``dflash-chat selftest`` from the shell's point of view."""

from __future__ import annotations

import json
import shutil
from functools import cache, partial

import pytest

from dflash_tui.cli.commands import selftest
from dflash_tui.cli.main import main
from engine.hub.pairs import BUNDLED_PAIR
from engine.lab.judging import selftest as judging
from tests.engine.edited import edit_config

QUICK = ["selftest", "--tokens", "16", "--device", "cpu"]


def test_it_says_what_it_found_in_words_and_as_an_object(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selftest, "_run", cache(selftest._run))
    assert main([*QUICK]) == 0
    out = capsys.readouterr().out
    assert "by position in the draft" in out and "predicted" in out and "Sound" in out
    assert main([*QUICK, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["healthy"] is True and found["divergences"] == []
    assert len(found["positions"]) == 15 and len(found["bins"]) == 10
    assert found["positions"][0].keys() == {"reached", "right"}


def test_a_target_without_a_drafter_is_an_error_with_a_next_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["selftest", "--draft", "none", "--device", "cpu"]) == 2
    error = capsys.readouterr().err
    assert "no drafter" in error and "--draft" in error


def test_a_drafter_wired_wrongly_exits_with_1(tmp_path_factory: pytest.TempPathFactory) -> None:
    drafter = shutil.copytree(BUNDLED_PAIR / "drafter", tmp_path_factory.mktemp("wrong") / "drafter")
    edit_config(drafter, "dflash_config", target_layer_ids=[5, 3, 1])
    assert main([*QUICK, "--draft", str(drafter)]) == 1


@pytest.mark.ci  # two pairs are tested
def test_packed_weights_are_compared_with_the_same_pair_in_bf16(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "self_test", partial(judging.self_test, prompts=judging.PROMPTS[:2]))
    assert main([*QUICK, "--weights", "int4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["weights"] == "int4" and found["in_bf16"] > 1 and found["in_bf16"] != found["acceptance_length"]
