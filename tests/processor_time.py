"""Processor seconds of a test run by folder: user and system time of the tests' process and of the programs that they
started and waited for. Under ``pytest-xdist`` each worker counts its own, and the process that reports adds them up.

``budget.toml`` says what each folder may take in ``make test``, in units of a loop, so that a slow machine is not at
fault. A processor's pace changes threefold within a run where others share it, so the loop is timed again and again
between the tests. With ``BUDGETS=true``, as in ``.ci/run``, a run above one fails."""

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
LOOP = "loop"
LOOPS = "loops"
ADDITIONS = 50_000
"""Of one loop."""
UNIT = 1_000_000
"""Additions that are the unit of a budget."""
EVERY = 1.0
"""Processor seconds of tests between two loops."""
TEST = re.compile(r"^ *(?:async )?def test_", re.MULTILINE)


def spent() -> float:
    """Processor seconds of this process and of its children that have ended and were waited for."""
    now = os.times()
    return now.user + now.system + now.children_user + now.children_system


def loop() -> float:
    """Processor seconds of one loop."""
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
        self.pace: Counter[str] = Counter()
        """Loops, and processor seconds of all of them."""
        self.next_loop = 0.0

    @pytest.hookimpl(wrapper=True, trylast=True)  # inside the locks: waiting for them takes next to nothing, too
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        before = spent()
        try:
            return (yield)
        finally:
            self.seconds[self.folder_of(item.path)] += spent() - before
            self.time_the_loop()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.ran.add(report.nodeid.partition("[")[0])

    def time_the_loop(self) -> None:
        if process_time() >= self.next_loop:
            self.pace.update({LOOP: loop(), LOOPS: 1})
            self.next_loop = process_time() + EVERY

    @property
    def unit(self) -> float:
        """Processor seconds of the unit, by the loops of all workers."""
        return self.pace[LOOP] / self.pace[LOOPS] * UNIT / ADDITIONS

    def folder_of(self, path: Path) -> str:
        """The folder right below ``tests`` that a file lies in; ``tests`` for a file that lies in none."""
        try:
            first, *below = path.relative_to(self.tests).parts
        except ValueError:
            return "elsewhere"
        return first if below else self.tests.name

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.time_the_loop()
        self.seconds[SETTING_UP] += spent() - self.seconds.total() - self.pace[LOOP]
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[WORKERS_FIGURES] = dict(self.seconds)
            output[LOOPS] = dict(self.pace)
        elif os.environ.get("BUDGETS") == "true" and self.above():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """A worker of ``pytest-xdist`` has ended; one that crashed has sent nothing."""
        output = getattr(node, "workeroutput", {})
        self.seconds.update(output.get(WORKERS_FIGURES, {}))
        self.pace.update(output.get(LOOPS, {}))

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
