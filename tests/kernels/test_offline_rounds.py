"""What a round launches beside the target's pass compiles for a Hopper GPU at the published shapes, without one."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from engine.kernels.toolchain.jit import HAS_TRITON
from tests.kernels.early_reads import waits_in_time


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.skipif(not HAS_TRITON, reason="needs Triton")
def test_a_round_compiles_for_hopper() -> None:
    # Another process: in this one the interpreter stands in for the compiler.
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", "tests.kernels.offline_rounds"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=170)
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"\| (_\w+) \| \S+ \| \d+ \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| \d+ \| (.+) \|", done.stdout)
    assert {row[0] for row in rows} >= {
        "_begin",
        "_attend_window",
        "_attend_full",
        "_combine_splits",
        "_count_digits",
        "_draw",
        "_accept",
        "_pick_choices",
        "_grow",
        "_move_accepted",
    }
    for kernel, registers, local, shared, wide, early in rows:
        assert waits_in_time(kernel, early), f"{kernel}: {early}"
        assert int(registers) <= 255 and int(shared) <= 227 * 1024
        assert int(local) == 0, kernel
        if kernel in ("_project", "_gate_up", "_head", "_attend_window", "_attend_full"):
            assert int(wide) > 0, kernel
