"""Recording the bundled traces, where nothing is installed but what the engine needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from dflash_tui.core.replay.recording import read_recording
from tests.pace import IN_CI

ABSENT = ("click", "hypothesis", "platformdirs", "pytest", "rich", "textual")
WITHOUT = """
import runpy, sys
for name in {absent}:
    sys.modules[name] = None  # importing it fails
sys.argv = ["record_traces", *{arguments}]
runpy.run_module("dflash_tui.traces.record_traces", run_name="__main__")
"""


def test_a_trace_is_recorded_with_the_engine_alone(tmp_path: Path) -> None:
    """Elsewhere than in CI none is: that it imports what is there takes a tenth of the time."""
    names = ["maths", "gpu"] if IN_CI else ["gpu"]
    code = WITHOUT.format(absent=ABSENT, arguments=["--only", *names, "--into", str(tmp_path)])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["maths.jsonl"][:IN_CI], "the other one belongs to a card"
    if not IN_CI:
        return
    trace = read_recording(tmp_path / "maths.jsonl")
    assert trace.problem is None and trace.ready is not None and trace.ready.device == "cpu"
    assert "19" in "".join(token.text for step in trace.steps for token in step.emitted)  # 12 and 7 more
