"""Code blocks in scripts: ``-x`` and ``--save-dir``, and where the figures stand."""

from __future__ import annotations

from pathlib import Path
from subprocess import DEVNULL, STDOUT

import pytest

from dflash_tui.core.exit_codes import ExitCode
from support.scripted import Script

from .conftest import Program
from .programs import program as running

TWO_BLOCKS = ("```html\n<p>é\n", "```\nand\n```python run.py\nprint(1)\n```\n")


def test_every_block_is_saved_and_told(program: Program, tmp_path: Path) -> None:
    program.script = Script(pieces=TWO_BLOCKS)
    program.run("-p", "hi", "--save-dir", str(tmp_path / "out"))
    assert (program.code, program.out.decode()) == (ExitCode.OK, "".join(TWO_BLOCKS))
    assert {path.name: path.read_text() for path in (tmp_path / "out").iterdir()} == {
        "index.html": "<p>é\n",
        "run.py": "print(1)\n",
    }
    assert [line for line in program.err.splitlines() if line.startswith("saved ")] == [
        f"saved {tmp_path / 'out' / name}" for name in ("index.html", "run.py")
    ]


def test_a_block_without_an_end_is_saved_and_told(program: Program, tmp_path: Path) -> None:
    program.script = Script(pieces=("```html\n<p>",))
    program.run("-p", "hi", "--save-dir", str(tmp_path))
    assert (program.code, (tmp_path / "index.html").read_text()) == (ExitCode.OK, "<p>")
    assert "no end" in program.err


def test_no_block_to_save(program: Program, tmp_path: Path) -> None:
    program.script = Script(pieces=("words",))
    program.run("-p", "hi", "--save-dir", str(tmp_path / "out"))
    assert (program.code, program.out) == (ExitCode.GENERATION, b"words\n")
    assert "no code block" in program.err and not (tmp_path / "out").exists()


def test_a_block_that_leads_out_of_the_folder(program: Program, tmp_path: Path) -> None:
    program.script = Script(pieces=("```html ../evil.html\n<p>\n```\n",))
    program.run("-p", "hi", "--save-dir", str(tmp_path / "out"))
    assert program.code == ExitCode.OK
    assert f"saved {tmp_path / 'out' / 'evil.html'} (the answer calls it '../evil.html')" in program.err
    assert not (tmp_path / "evil.html").exists()


def test_a_folder_that_cannot_be_written_is_told_before_anything_is_asked(program: Program, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    program.run("-p", "hi", "--save-dir", str(tmp_path / "file"))
    assert (program.code, program.engines) == (ExitCode.USAGE, []) and "--save-dir" in program.err


@pytest.mark.parametrize("together", [True, False])
def test_figures_stand_on_a_line_of_their_own(tmp_path: Path, together: bool) -> None:
    with open(tmp_path / "out", "wb") as out:
        where = STDOUT if together else DEVNULL
        with running("plain", "-p", "hi", stdout=out.fileno(), stderr=where) as process:
            process.wait(60)
    text = (tmp_path / "out").read_text()
    assert text.endswith("\nDone\n") if not together else "\nDone\n12 tokens" in text
