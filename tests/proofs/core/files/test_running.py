"""Running a block: what it may, and that nothing of it stays, whatever it does."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from dflash_tui.core.files.running import KEPT, RunResult, start
from dflash_tui.core.text.fences import CodeBlock


def block(code: str, language: str = "python") -> CodeBlock:
    return CodeBlock(1, language, language, None, code, True)


def run(code: str, seconds: float = 20.0) -> RunResult:
    return start(block(code), seconds).wait()


def test_output_and_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DFLASH_CHAT_KEY", "secret")
    monkeypatch.setenv("DISPLAY", ":0")
    result = run(
        "import os, sys\nprint('out', flush=True)\nprint('grün', file=sys.stderr)\n"
        "print(dict(os.environ), os.getcwd())\nsys.exit(3)"
    )
    assert (result.ending, result.exit_code) == ("ended", 3)
    assert result.output.startswith("out\ngrün\n") and "secret" not in result.output and "DISPLAY" not in result.output
    folder = Path(result.output.split()[-1])
    assert "dflash-chat-run" in folder.name and not folder.exists()


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time\nwhile True: time.sleep(1)",
        "import signal\nsignal.signal(15, signal.SIG_IGN)\nwhile True: pass",
    ],
)
def test_what_never_ends_is_ended(code: str) -> None:
    started = time.monotonic()
    result = run(code, 0.5)
    assert (result.ending, result.exit_code) == ("timeout", None) and time.monotonic() - started < 5


def test_a_flood_is_ended_and_cut() -> None:
    result = run("import os\nos.write(1, b'first line')\nwhile True: os.write(1, b'x' * 65536)", 60)
    assert result.ending == "flooded" and result.output.startswith("first line")
    assert "bytes are left out" in result.output and len(result.output) < KEPT + 100


def gone(mark: str) -> bool:
    """No process has this argument."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and mark in (entry / "cmdline").read_text(errors="replace"):
                return False
        except OSError:
            continue
    return True


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_children_that_leave_the_group_end_too() -> None:
    mark = f"{os.getpid()}.4321"
    result = run(f"import subprocess\nsubprocess.Popen(['sleep', '{mark}'], start_new_session=True)\nprint('bye')")
    assert result.output == "bye\n" and result.exit_code == 0
    deadline = time.monotonic() + 60
    while not gone(mark):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_stopped_by_the_user() -> None:
    running = start(block("print('x', flush=True)\nwhile True: pass"))
    threading.Timer(0.3, running.stop).start()
    assert running.wait().ending == "stopped"


def test_memory_is_limited() -> None:
    assert "MemoryError" in run("x = bytearray(1 << 34)").output
