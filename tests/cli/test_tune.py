"""``dflash-chat tune`` from the shell's point of view."""

from __future__ import annotations

import json
import re

import pytest

from dflash_tui.cli.main import main

QUICK = ["tune", "--device", "cpu", "--tokens", "24", "-p", "what is 47 + 38?"]


def test_it_compares_every_size_with_choosing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(QUICK) == 0
    out = capsys.readouterr().out
    assert all(f"\n{name} " in out for name in ("plain", "block 2", "block 16", "auto", "oracle"))
    assert re.match(r"milliseconds at context 128: draft \d.*of 16 rows \(timed in \d\.\d\d s\)\n\n", out)
    assert "times the best fixed size" in out and "prompts of your own" in out


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUICK, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["fixed"].keys() == {"1", "2", "4", "6", "8", "12", "16"}
    assert 0 < found["auto"]["low"] <= found["auto"]["tok_s"] <= found["auto"]["high"]
    assert found["oracle"]["tok_s"] >= found["auto"]["tok_s"]
    assert str(found["best_block_size"]) in found["fixed"]


def test_without_a_drafter_there_is_nothing_to_tune(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUICK, "--draft", "none"]) == 2
    assert "no drafter" in capsys.readouterr().err
