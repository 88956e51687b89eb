"""The driver of the GPU checks: what hangs, crashes or never starts costs its own part and nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from measure.gpu.check_speed import Part, last_lines, run_parts

PROGRAMS = {
    "fine": "import sys, json; print('first'); print('last'); open(sys.argv[-1], 'w').write(json.dumps({'ms': 1}))",
    "crashes": "import os; print('so far', flush=True); os.abort()",
    "hangs": "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])",
}


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Part]:
    for name, code in PROGRAMS.items():
        (tmp_path / f"part_{name}.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    limits = {"hangs": 1.0}
    return [Part(name, f"part_{name}", "", limits.get(name, 60.0), 5) for name in ("crashes", "hangs", "fine")]


def test_every_part_gets_its_turn(parts: list[Part], tmp_path: Path) -> None:
    outcomes = {each.name: each for each in run_parts(parts, False, 300.0, tmp_path)}
    assert outcomes["fine"].status == "ok"
    assert outcomes["crashes"].status.startswith("failed")
    assert outcomes["hangs"].status == "stopped after 1 s" and outcomes["hangs"].seconds < 30
    assert json.loads((tmp_path / "fine.json").read_text()) == {"ms": 1}
    assert last_lines(outcomes["fine"].log, 1) == ["last"] and last_lines(outcomes["crashes"].log, 5)[0] == "so far"
    written = json.loads((tmp_path / "outcomes.json").read_text())
    assert [each["name"] for each in written] == ["crashes", "hangs", "fine"]


def test_parts_that_time_does_not_reach_are_named(parts: list[Part], tmp_path: Path) -> None:
    outcomes = run_parts(parts, False, 5.0, tmp_path)
    assert {each.status for each in outcomes} == {"no time left"}
