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


def test_the_answer_and_its_program_are_the_same_however_they_are_asked_for(tmp_path: Path) -> None:
    """``tests/cli`` has every way, with a scripted engine."""
    result = run("-p", QUESTION, "--json")
    assert result.returncode == 0, result.stderr.decode()
    answer = json.loads(result.stdout)["text"]
    path = tmp_path / "sort.py"
    written = run("-x", "-o", str(path), *UNTIMED, stdin=QUESTION.encode())
    assert (written.returncode, written.stdout) == (0, b"")
    assert "def " in path.read_text() and path.read_text().strip() in answer
    subprocess.run([sys.executable, path], check=True, capture_output=True, timeout=60)
