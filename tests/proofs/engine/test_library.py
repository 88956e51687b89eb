"""``import engine``: what a program that embeds it sees."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_example_of_the_documents_runs() -> None:
    page = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    example = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    result = subprocess.run([sys.executable, "-c", example], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "def quicksort" in result.stdout and "tokens per second" in result.stdout
