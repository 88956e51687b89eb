"""A recording run killed in the middle of an answer: the trace holds all of it but the last moment."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from dflash_tui.core.traces.reader import read_trace
from dflash_tui.core.traces.writer import FLUSH_SECONDS

from .chatting import DRONE_PAGE, PROGRAM, UNTIMED

SECONDS = 2.0
"""Of the answer, which takes longer without speculation."""
BUSY = 0.5
"""Seconds that a machine which runs other tests may take to write what is due."""


def test_a_killed_program_loses_half_a_second_of_its_trace(tmp_path: Path) -> None:
    path = tmp_path / "run.dft"
    command = [PROGRAM, "-p", DRONE_PAGE, "--no-speculation", *UNTIMED, "--stream-json", "--trace", str(path)]
    seen = []
    with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        for line in program.stdout:
            event = json.loads(line)
            if event["event"] == "Step":
                seen.append(event["time"])
                if event["time"] > SECONDS:
                    break
        program.kill()
    trace = read_trace(path)
    assert trace.problem is not None and "cut short" in trace.problem
    steps = list(trace.steps)
    assert [step.time for step in steps[: len(seen)]] == [round(time, 6) for time in seen[: len(steps)]]
    assert seen[-1] - steps[-1].time < FLUSH_SECONDS + BUSY
    assert steps[-1].time > 1.0
