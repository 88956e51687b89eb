"""The question whether the real model shall open: when it is asked, and that it is asked once."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from dflash_tui.cli.first_contact import suggest_model
from engine.commands import EngineOptions
from engine.tools.suggestion import suggest_pair

H200, SMALL, LARGE = "NVIDIA H200, 143771, 143000", "NVIDIA GeForce RTX 4090, 24564, 24000", "NVIDIA L4, 14000, 13000"
MIXTURE, DENSE = "google/gemma-4-26B-A4B-it", "google/gemma-4-12B-it"


@pytest.fixture
def card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tool of the driver that says what this file holds."""
    says = tmp_path / "says"
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f'#!/bin/sh\n[ -e {says} ] || exit 9\nwhile read -r line; do echo "$line"; done < {says}\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    return says


def reply(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


@pytest.mark.parametrize(
    ("said", "target"),
    [
        (f"{H200}\n{SMALL}\n", MIXTURE),
        (f"{SMALL}\n", MIXTURE),
        (f"{LARGE}\n", DENSE),
        ("NVIDIA T1, 8000, 8000\n", None),
        ("oops\n", None),
    ],
)
def test_what_a_card_can_hold(card: Path, said: str, target: str | None) -> None:
    card.write_text(said)
    suggestion = suggest_pair()
    assert (suggestion.pair.target if suggestion else None) == target


def test_no_driver_and_a_driver_that_fails(card: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert suggest_pair() is None
    monkeypatch.setenv("PATH", str(card.parent / "empty"))
    assert suggest_pair() is None


@pytest.mark.parametrize(("answer", "target"), [("y\n", MIXTURE), ("YES\n", MIXTURE), ("n\n", None), ("\n", None)])
def test_the_answer_is_remembered(
    card: Path, answer: str, target: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    card.write_text(f"{H200}\n")
    reply(monkeypatch, answer)
    assert suggest_model(EngineOptions()).target == target
    asked = capsys.readouterr().err
    assert "NVIDIA H200" in asked and MIXTURE in asked and "51 GB" in asked
    reply(monkeypatch, "")
    assert suggest_model(EngineOptions()).target == target
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "options",
    [
        EngineOptions(target="./mine"),
        EngineOptions(drafter="none"),
        EngineOptions(device="cpu"),
        EngineOptions(offline=True),
    ],
)
def test_who_says_what_they_want_is_not_asked(
    card: Path, options: EngineOptions, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    card.write_text(f"{H200}\n")
    reply(monkeypatch, "y\n")
    assert suggest_model(options) == options
    assert capsys.readouterr().err == ""


def test_a_machine_without_a_card_is_not_asked_and_may_be_later(
    card: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reply(monkeypatch, "y\n")
    assert suggest_model(EngineOptions()).target is None
    assert capsys.readouterr().err == ""
    card.write_text(f"{H200}\n")
    assert suggest_model(EngineOptions()).target == MIXTURE
