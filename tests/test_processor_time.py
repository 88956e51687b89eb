"""What tests cost by folder: their programs' time counts, workers' figures add up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.processor_time import SETTING_UP, ProcessorTime

BUSY_FOR = 0.3
BUSY = f"import time\nwhile time.process_time() < {BUSY_FOR}: pass"
TICKS = 0.02
"""User and system time are each told in whole hundredths of a second."""


def test_a_program_counts_for_the_folder_whose_test_waited_for_it(tmp_path: Path) -> None:
    counted = ProcessorTime(tmp_path)
    around: Any = counted.pytest_runtest_protocol(SimpleNamespace(path=tmp_path / "core" / "text" / "test_it.py"))  # type: ignore[arg-type]
    next(around)
    subprocess.run([sys.executable, "-c", BUSY], check=True)
    with pytest.raises(StopIteration):
        around.send(None)
    assert set(counted.seconds) == {"core"} and counted.seconds["core"] >= BUSY_FOR - TICKS


def test_workers_figures_add_up_without_what_one_that_crashed_never_sent(tmp_path: Path) -> None:
    worker, reporting = ProcessorTime(tmp_path), ProcessorTime(tmp_path)
    worker.seconds["core"] = 2.0
    config = SimpleNamespace(workeroutput={})
    worker.pytest_sessionfinish(SimpleNamespace(config=config))  # type: ignore[arg-type]
    for node in (SimpleNamespace(workeroutput=config.workeroutput), SimpleNamespace()):
        reporting.pytest_testnodedown(node)
        reporting.pytest_testnodedown(node)
    assert reporting.seconds["core"] == 4.0 and set(reporting.seconds) == {"core", SETTING_UP}
    assert reporting.unit == pytest.approx(worker.unit)


@pytest.mark.parametrize(
    ("path", "folder"),
    [("tests/test_it.py", "tests"), ("tests/app/test_it.py", "app"), ("other/test_it.py", "elsewhere")],
)
def test_folders(tmp_path: Path, path: str, folder: str) -> None:
    assert ProcessorTime(tmp_path / "tests").folder_of(tmp_path / path) == folder
