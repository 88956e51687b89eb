"""The training of the pair from its files, at toy size, and what the report says beside the bundled pair's."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from engine.lab.demo.build import PHASES, beside_the_bundled, main
from engine.lab.demo.model.files import PAIR
from engine.lab.demo.texts.exchanges import DOMAINS


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_chain_runs_phase_by_phase_and_leaves_a_pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In two calls, as on two days: the second goes on from what the first left."""
    for phases in (PHASES[:2], PHASES[2:]):
        monkeypatch.setattr(sys, "argv", ["build", *phases, "--smoke", "--pair", str(tmp_path)])
        main()
    assert {path.name for path in (tmp_path / "target").iterdir()} >= {"config.json", "model.safetensors"}
    assert (tmp_path / "drafter" / "model.safetensors").exists()
    report = json.loads((tmp_path / "report.json").read_text())
    assert set(report["figures"]["domains"]) == set(DOMAINS)
    losses = [each["loss"] for each in json.loads((tmp_path / "training.json").read_text())["target"]["history"]]
    assert losses[-1] < 0.95 * losses[0]


def test_the_bundled_pair_beside_itself_is_the_same() -> None:
    lines = beside_the_bundled(json.loads((PAIR / "report.json").read_text())).splitlines()
    assert lines[1].split() == ["code", "97%", "97%", "6.11", "6.11"] and len(lines) == 1 + len(DOMAINS)
