"""Whatever the README tells people to type works as pasted: every command, every module, every slash command."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dflash_tui.app.actions import ACTIONS

from .conftest import Program

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`((?:dflash-chat|python -m|make)\b[^`\n]*)`")


def pasted() -> Iterator[str]:
    """Lines of blocks, without what two blanks and more part from them, and commands within sentences."""
    for language, block in _BLOCK.findall(README):
        for line in () if language else block.splitlines():
            yield re.split(r" {2,}", line.strip())[0].partition(" #")[0].strip()
    yield from (line for line in _INLINE.findall(_BLOCK.sub("", README)) if line != "python -m")


COMMANDS = sorted({line for line in pasted() if line})
CHATS = [line for line in COMMANDS if re.search(r"(^|\| )dflash-chat\b", line)]


def test_there_is_nothing_else_to_paste() -> None:
    known = ("dflash-chat", "git diff | dflash-chat", "printf", "make ", "python -m ", "pip install", "pipx ", "source")
    assert CHATS and not [line for line in COMMANDS if not line.startswith(known)]


@pytest.mark.parametrize("line", CHATS)
def test_a_command_is_understood(program: Program, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A prompt is answered, on a scripted engine; of what needs a terminal, a network or a card the flags are read."""
    words = shlex.split(re.split(r"\| jq\b", line)[0].rpartition("dflash-chat")[2])
    if words[:1] == ["help"] or words[:1] == ["completion"]:
        words = [word for word in words if word != "TOPIC"]
    monkeypatch.chdir(tmp_path)
    if "-p" in words and words[0].startswith("-"):
        assert program.run(*words).code == 0, program.err
    else:
        dry = [] if words[:1] in (["help"], ["completion"]) else ["--help"]
        assert program.run(*words, *dry).code == 0, program.err


def test_piped_lines_work_as_pasted(tmp_path: Path) -> None:
    (line,) = (line for line in COMMANDS if line.startswith("printf"))
    shim = tmp_path / "dflash-chat"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tests.cli.scripted plain "$@"\n')
    shim.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "DFLASH_CHAT_STATE": str(tmp_path)}
    done = subprocess.run(line, shell=True, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0 and "version 2 of 2 of the answer, you are here: hello" in done.stdout, done.stderr


def test_modules_and_make_targets_are_there() -> None:
    modules = {name for line in COMMANDS for name in re.findall(r"python -m ([\w.]+)", line)}
    named = set(re.findall(r"`(check_\w+)`", README))
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    assert modules and not missing
    assert all((ROOT / "measure" / "gpu" / f"{name}.py").exists() for name in named)
    targets = {line.split()[1] for line in COMMANDS if line.startswith("make ")}
    assert all(f"\n{target}: " in (ROOT / "Makefile").read_text("utf-8") for target in targets)


def test_slash_commands_pictures_and_files_are_there() -> None:
    slash = set(re.findall(r"`/(\w+)", README)) - {"v1", "health", "metrics"}
    assert slash and slash <= {action.slash for action in ACTIONS.values()}
    for path in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / path).exists(), path
    assert (ROOT / "screenshots" / "run.svg").stat().st_size < 1_500_000
