"""Processor seconds of a test run by folder: user and system time of the tests' process and of the programs that they
started and waited for. Under ``pytest-xdist`` each worker counts its own, and the process that reports adds them up.

``budget.toml`` says what each folder may take in ``make test``, in units of a loop that is timed at the start, so that
a slow machine is not at fault. With ``BUDGETS=true``, as in ``.ci/run``, a run above one fails."""

from __future__ import annotations

import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import process_time

import pytest

SETTING_UP = "collecting, imports"
"""What a process used outside its tests."""
WORKERS_FIGURES = "processor_seconds"
ADDITIONS = 1_000_000
"""Of the loop that is the unit of a budget."""
TEST = re.compile(r"^ *(?:async )?def test_", re.MULTILINE)


def spent() -> float:
    """Processor seconds of this process and of its children that have ended and were waited for."""
    now = os.times()
    return now.user + now.system + now.children_user + now.children_system


def unit() -> float:
    """Processor seconds of the loop."""
    began, total = process_time(), 0
    while total < ADDITIONS:
        total += 1
    return process_time() - began


class ProcessorTime:
    """A plugin: adds up what tests use, and says so under the results; and how many tests ran of all there are."""

    def __init__(self, tests: Path) -> None:
        self.tests = tests
        self.seconds: Counter[str] = Counter()
        self.ran: set[str] = set()
        """Test functions."""
        self.unit = min(unit() for _ in range(3))

    @pytest.hookimpl(wrapper=True, trylast=True)  # inside the locks: waiting for them takes next to nothing, too
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        before = spent()
        try:
            return (yield)
        finally:
            self.seconds[self.folder_of(item.path)] += spent() - before

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.ran.add(report.nodeid.partition("[")[0])

    def folder_of(self, path: Path) -> str:
        """The folder right below ``tests`` that a file lies in; ``tests`` for a file that lies in none."""
        try:
            first, *below = path.relative_to(self.tests).parts
        except ValueError:
            return "elsewhere"
        return first if below else self.tests.name

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.seconds[SETTING_UP] += spent() - self.seconds.total()
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[WORKERS_FIGURES] = dict(self.seconds)
        elif os.environ.get("BUDGETS") == "true" and self.above():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """A worker of ``pytest-xdist`` has ended; one that crashed has sent nothing."""
        self.seconds.update(getattr(node, "workeroutput", {}).get(WORKERS_FIGURES, {}))

    def above(self) -> list[str]:
        """The folders above their budgets, in words."""
        budgets: dict[str, int] = tomllib.loads((self.tests / "budget.toml").read_text("utf-8"))["units"]
        took = {name: self.seconds[name] / self.unit for name in budgets}
        return [f"{name} took {took[name]:.0f} of {most} units" for name, most in budgets.items() if took[name] > most]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        rows = [(name, seconds) for name, seconds in self.seconds.most_common() if seconds >= 0.05]
        terminalreporter.section("processor seconds by folder, and in units of the budgets")
        for name, seconds in (*rows, ("in all", self.seconds.total())):
            terminalreporter.write_line(f"{seconds:9.1f} {seconds / self.unit:8.0f}  {name}")
        if os.environ.get("BUDGETS") == "true":
            for line in self.above():
                terminalreporter.write_line(f"above its budget (tests/budget.toml): {line}", red=True)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """The last line."""
        if hasattr(config, "workerinput") or not self.ran:
            return
        texts = (path.read_text("utf-8") for path in self.tests.rglob("test_*.py"))
        print(f"{len(self.ran)} of {sum(len(TEST.findall(text)) for text in texts)} tests; the proofs: make proofs")
