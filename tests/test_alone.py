"""Of two workers one waits while the other runs a test marked ``alone``; else both run."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations
from pathlib import Path

CONFTEST = Path(__file__).with_name("conftest.py")
SETTINGS = "[pytest]\nmarkers =\n    alone\n    slow\n    ci\n    terminal\n    browser\n    gpu\n"
TESTS = """
import time
from pathlib import Path
import pytest

def take_a_while(name):
    began = time.monotonic()
    time.sleep(0.05)
    Path(name).write_text(f"{began} {time.monotonic()}")

@pytest.mark.parametrize("number", range(24))
def test_beside_others(number):
    take_a_while(f"beside {number}")

@pytest.mark.alone
@pytest.mark.parametrize("number", range(12))
def test_alone(number):
    take_a_while(f"alone {number}")
"""


def test_nothing_runs_beside_what_is_alone(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST.read_text("utf-8"), "utf-8")
    (tmp_path / "pytest.ini").write_text(SETTINGS, "utf-8")
    (tmp_path / "test_these.py").write_text(TESTS, "utf-8")
    command = [sys.executable, "-m", "pytest", "--numprocesses", "2", "--dist", "worksteal"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "36 passed" in done.stdout, done.stdout + done.stderr

    together: set[str] = set()
    for one, other in combinations(sorted(tmp_path.glob("* *")), 2):
        (began, ended), (other_began, other_ended) = (map(float, path.read_text().split()) for path in (one, other))
        if began < other_ended and other_began < ended:
            together |= {one.name, other.name}
    assert together
    assert not {name for name in together if name.startswith("alone")}
