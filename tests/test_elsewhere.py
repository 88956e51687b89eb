"""The command line and the screen as they run where the modules are missing that Windows lacks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_they_pass_their_tests_without_those_modules() -> None:
    """Without what measures time, and the long proofs, for which these modules make no difference."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests" / "elsewhere"), "CI": "false"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        "not alone",
        "--ignore=tests/app/test_slow_terminal.py",
        "tests/cli",
        "tests/app",
    ]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-20_000:] + result.stderr
