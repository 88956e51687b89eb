"""``dflash-chat export`` and ``dflash-chat lesson`` without a screen."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dflash_tui.core.exit_codes import ExitCode
from tests.cli.conftest import Program


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("a.html", "<!doctype html>"),
        ("a.json", "{"),
        ("a.txt", "Write"),
    ],
)
def test_the_file_s_name_decides_the_format(program: Program, tmp_path: Path, name: str, begins: str) -> None:
    path = tmp_path / name
    program.run("export", "lesson", "-o", str(path))
    assert (program.code, program.out.decode()) == (ExitCode.OK, f"{path}\n")
    assert path.read_text(encoding="utf-8").startswith(begins)


def test_into_a_pipe(program: Program) -> None:
    program.run("export", "lesson", "--format", "json")
    sections = json.loads(program.out)["sections"]
    assert program.code == ExitCode.OK and sections[0]["question"] == "Write a quicksort in Python"
    program.run("export", "lesson")
    assert program.out.decode().startswith("Write a quicksort in Python\n")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("export",), "RECORDING"),
        (("export", "nothing-here"), "nothing-here"),
        (("export", "lesson", "-o", "page.pdf"), "no format that is known"),
        (("export", "lesson", "-o", "no/folder/page.html"), "can't be written"),
    ],
)
def test_what_cannot_be_exported_is_told(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    program.run(*arguments)
    assert (program.code, program.out) == (ExitCode.USAGE, b"")
    assert complaint in program.err


def test_the_lesson_is_text_in_a_pipe(program: Program) -> None:
    program.run("lesson")
    text = program.out.decode()
    assert program.code == ExitCode.OK and text.startswith("1. One token at a time\n")
    assert max(map(len, text.splitlines())) <= 100


def test_neither_torch_nor_a_screen_is_loaded_without_need() -> None:
    """By anything that shows what was recorded."""
    commands = [["lesson"], ["export", "lesson", "--format", "html"], ["race", "--help"], ["replay", "maths"]]
    code = (
        f"import sys; from dflash_tui.cli.main import main; codes = [main(each) for each in {commands!r}]\n"
        "sys.stderr.write(' '.join(name.partition('.')[0] for name in sys.modules)); sys.exit(any(codes))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0 and "19 apples" in result.stdout, result.stderr
    assert set(result.stderr.split()) & {"torch", "transformers", "textual"} == set()
