"""The command line and the screen as they run where the modules are missing that Windows lacks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OTHERWISE = [
    *("tests/cli/test_background.py", "tests/cli/test_code.py", "tests/cli/test_doctor.py", "tests/cli/test_plain.py"),
    "tests/proofs/app/test_process.py",
]
"""Tests of what goes another way there, all that ask ``core/platforms.py`` what there is: terminals and their colours,
running code, lines with a memory, the driver of the screen."""
IMPORT_ALL = """
import importlib, pkgutil
import dflash_tui, engine
for package in (dflash_tui, engine):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.startswith(("engine.lab", "dflash_tui.app.keyboard")) and "__main__" not in module.name:
            importlib.import_module(module.name)
            print(module.name)
"""


def elsewhere(*command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests" / "elsewhere"), "CI": "false"}
    result = subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-20_000:] + result.stderr
    return result.stdout


@pytest.mark.ci
@pytest.mark.slow
def test_every_module_imports_without_those_modules() -> None:
    """But for what drives a terminal itself, which nobody imports there."""
    assert len(elsewhere("-c", IMPORT_ALL).splitlines()) > 300


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_what_goes_another_way_there_passes_its_tests() -> None:
    """Without what measures time, and the long proofs, for which these modules make no difference."""
    elsewhere("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not alone", *OTHERWISE)
