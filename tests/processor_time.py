"""Processor seconds of a test run by folder: user and system time of the tests' process and of the programs that they
started and waited for. Under ``pytest-xdist`` each worker counts its own, and the process that reports adds them up."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

SETTING_UP = "collecting, imports"
"""What a process used outside its tests."""
WORKERS_FIGURES = "processor_seconds"


def spent() -> float:
    """Processor seconds of this process and of its children that have ended and were waited for."""
    now = os.times()
    return now.user + now.system + now.children_user + now.children_system


class ProcessorTime:
    """A plugin: adds up what tests use, and says so under the results."""

    def __init__(self, tests: Path) -> None:
        self.tests = tests
        self.seconds: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True, trylast=True)  # inside the locks: waiting for them takes next to nothing, too
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        before = spent()
        try:
            return (yield)
        finally:
            self.seconds[self.folder_of(item.path)] += spent() - before

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

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """A worker of ``pytest-xdist`` has ended; one that crashed has sent nothing."""
        self.seconds.update(getattr(node, "workeroutput", {}).get(WORKERS_FIGURES, {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        rows = [(name, seconds) for name, seconds in self.seconds.most_common() if seconds >= 0.05]
        terminalreporter.section("processor seconds by folder")
        for name, seconds in (*rows, ("in all", self.seconds.total())):
            terminalreporter.write_line(f"{seconds:9.1f}  {name}")
