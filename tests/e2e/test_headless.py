"""The installed program on the bundled pair, as a script would use it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from .chatting import PROGRAM, UNTIMED

QUESTION = "Write a quicksort in Python"


def run(*arguments: str, stdin: bytes = b"", **kwargs: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([PROGRAM, *arguments], input=stdin, capture_output=True, timeout=120, **kwargs)


def test_stdout_is_the_answer_however_it_is_asked_for() -> None:
    """Into a file: below; ``tests/cli`` has every other way, with a scripted engine."""
    result = run("-p", QUESTION, "--json")
    assert result.returncode == 0, result.stderr.decode()
    answer = json.loads(result.stdout)["text"]
    printed = answer if answer.endswith("\n") else f"{answer}\n"
    assert "def " in answer
    assert run(*UNTIMED, stdin=QUESTION.encode()).stdout.decode() == printed


def test_the_extracted_program_runs(tmp_path: Path) -> None:
    path = tmp_path / "sort.py"
    written = run("-p", QUESTION, "-x", "-o", str(path), *UNTIMED)
    assert (written.returncode, written.stdout) == (0, b"")
    subprocess.run([sys.executable, path], check=True, capture_output=True, timeout=30)
