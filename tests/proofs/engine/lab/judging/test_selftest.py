"""The self-test: sound pairs pass, drafters that are wired wrongly are seen at once, and the counts are right."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.decoding.decoder import Decoder
from engine.hub.published_drafters import REPORTED
from engine.lab.judging.selftest import RightByPosition, SelfTest, self_test
from engine.loading.checkpoint import load_drafter, load_target
from engine.tokenization.tokenizer import ChatTokenizer
from tests.engine.conftest import CPU, no_progress
from tests.engine.edited import edit_config

PROMPTS = ("Write a quicksort in Python", "what is 47 + 38?")


def examined(target: Path, drafter: Path) -> SelfTest:
    model = load_target(target, CPU, no_progress)
    decoder = Decoder(model, load_drafter(drafter, model, no_progress), 2048)
    return self_test(decoder, ChatTokenizer(target), 40, PROMPTS)


def test_the_bundled_pair_is_sound(bundled_pair: Path) -> None:
    found = examined(bundled_pair / "target", bundled_pair / "drafter")
    assert found.healthy and found.exact and found.first_rate > 0.8 and found.acceptance_length > 4
    assert found.verdict.startswith("Sound") and "same with and without" in found.verdict
    assert len(found.positions) == 15 and len(found.bins) == 10
    assert found.positions[0].reached == found.num_tokens
    assert sum(each.reached for each in found.bins) == sum(position.reached for position in found.positions)


@pytest.mark.parametrize("shift", [1, -1])
def test_taps_one_layer_off_are_named(bundled_pair: Path, tmp_path: Path, shift: int) -> None:
    """As where a format counts the embedding as the first output, and another doesn't."""
    drafter = shutil.copytree(bundled_pair / "drafter", tmp_path / "drafter")
    edit_config(drafter, "dflash_config", target_layer_ids=[tap + shift for tap in (1, 3, 5)])
    found = examined(bundled_pair / "target", drafter)
    assert not found.healthy and found.exact and found.better is not None
    assert found.better.field == "target_layer_ids" and found.better.acceptance_length > 1.5 * found.acceptance_length
    assert "target_layer_ids" in found.verdict


def test_a_text_that_speculation_changes_is_caught(bundled_pair: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that accepts one draft too many: the comparison must see it, with the margin there."""
    monkeypatch.setattr("engine.decoding.host_rounds.num_agreed", lambda draft, sampled: min(len(draft), 3))
    monkeypatch.setattr("engine.decoding.host_rounds._cut_at_stop", lambda ids, stops: ids)
    target = load_target(bundled_pair / "target", CPU, no_progress)
    scrambled = load_drafter(bundled_pair / "drafter", target, no_progress)
    with torch.no_grad():
        scrambled.fc.weight.zero_()
    found = self_test(Decoder(target, scrambled, 2048), ChatTokenizer(bundled_pair / "target"), 24, PROMPTS[:1])
    assert not found.exact and not found.healthy


@pytest.mark.parametrize(
    ("in_bf16", "said"),
    [(2.0, "INT4 makes the drafter worse"), (1.85, "INT4 leaves the drafter as good"), (None, "is not known")],
)
def test_packed_weights_are_held_against_bf16(in_bf16: float | None, said: str) -> None:
    found = SelfTest(10, (RightByPosition(10, 8),), (), (), 5, tie=1e-3, weights="int4", in_bf16=in_bf16)
    assert found.acceptance_length == 1.8 and said in found.verdict
    assert "INT4" not in replace(found, weights="bf16").verdict
    assert (
        "keeps 1.8 tokens a round here, its makers report 4.33"
        in replace(found, reported=REPORTED["z-lab/gemma-4-26B-A4B-it-DFlash"]).verdict
    )
