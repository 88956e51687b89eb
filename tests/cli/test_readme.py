"""Whatever README and docs/ tell people to type works as pasted: every command, every module, every slash command; and
what they point at is there."""

from __future__ import annotations

import csv
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
README = ROOT / "README.md"
PAGES = {path: path.read_text("utf-8") for path in (README, *sorted((ROOT / "docs").glob("*.md")))}
OTHERS = (ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", ROOT / "engine" / "kernels" / "DECISIONS.md")
NAMING = {**PAGES, **{path: path.read_text("utf-8") for path in OTHERS}}
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`]+)`")
_COMMAND = re.compile(r"dflash-chat(?![\w.-])|python -m \w|make \w")
_LINK = re.compile(r"\]\((?!http)([^)#]*)#?([^)]*)\)")


def pasted(page: str) -> Iterator[str]:
    """Lines of blocks, without what two blanks and more part from them, and commands within sentences."""
    for language, block in _BLOCK.findall(page):
        for line in () if language else block.splitlines():
            yield re.split(r" {2,}", line.strip())[0].partition(" #")[0].strip()
    for code in _CODE.findall(_BLOCK.sub("", page)):
        if _COMMAND.match(line := " ".join(code.split())):
            yield line


def anchors(page: str) -> set[str]:
    """How a page's headings are called in links, as GitHub does."""
    titles = re.findall(r"^#+ (.+)$", _BLOCK.sub("", page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


COMMANDS = sorted({line for page in PAGES.values() for line in pasted(page) if line})
CHATS = [line for line in COMMANDS if re.search(r"(^|\| )dflash-chat\b", line)]


def test_there_is_nothing_else_to_paste() -> None:
    known = (
        "dflash-chat",
        "git diff | dflash-chat",
        "printf",
        "make ",
        "python -m ",
        "pip install",
        "pipx ",
        "source",
        "llama-server ",
    )
    assert len(PAGES) > 5 and CHATS and not [line for line in COMMANDS if not line.startswith(known)]


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
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m support.scripted plain "$@"\n')
    shim.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "DFLASH_CHAT_STATE": str(tmp_path)}
    done = subprocess.run(line, shell=True, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "version 2 of 2 of the answer, you are here: hello" in done.stdout, done.stderr


def test_modules_and_make_targets_are_there() -> None:
    modules = {name for line in COMMANDS for name in re.findall(r"python -m ([\w.]+)", line)}
    ours = {name for name in modules if (ROOT / name.split(".")[0]).is_dir()}  # hatchling comes with the proofs
    missing = [name for name in ours if importlib.util.find_spec(name) is None]
    assert ours and not missing
    targets = {line.split()[1] for line in COMMANDS if line.startswith("make ")}
    assert all(f"\n{target}: " in (ROOT / "Makefile").read_text("utf-8") for target in targets)


@pytest.mark.parametrize("path", NAMING, ids=lambda path: path.name)
def test_what_a_page_names_is_there(path: Path) -> None:
    page = NAMING[path]
    codes = [" ".join(code.split()) for code in _CODE.findall(_BLOCK.sub("", page))]
    slash = {code[1:].split()[0] for code in codes if re.match(r"/\w+(?![\w/])", code)}
    assert slash - {"v1", "health"} <= {action.slash for action in ACTIONS.values()}
    assert all((ROOT / "measure" / "gpu" / f"{name}.py").exists() for name in codes if re.fullmatch(r"check_\w+", name))
    files = [code for code in codes if re.fullmatch(r"(?:engine|dflash_tui|measure|tests)/[\w./]+", code)]
    assert [name for name in files if not (ROOT / name).exists()] == []
    for name, anchor in _LINK.findall(page):
        linked = (path.parent / name).resolve() if name else path
        assert linked.exists(), name
        assert not anchor or anchor in anchors(linked.read_text("utf-8")), f"{name}#{anchor}"


def test_the_first_page_is_short_and_leads_to_all_others() -> None:
    assert README.stat().st_size <= 9 * 1024
    linked = {name for name, _ in _LINK.findall(PAGES[README])}
    assert {f"docs/{path.name}" for path in PAGES if path != README} <= linked
    assert (ROOT / "screenshots" / "run.svg").stat().st_size < 1_500_000


def _options(module: str) -> list[str]:
    """What is written like an option in a module, or in all of a package: nothing where it is gone."""
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None:
        return []
    origin = Path(found.origin)
    files = origin.parent.glob("*.py") if origin.name == "__init__.py" else [origin]
    return [option for path in files for option in re.findall(r'"(--[a-z-]+)"', path.read_text("utf-8"))]


def test_every_figure_has_a_number_a_day_and_a_way_to_get_it_again() -> None:
    kernels = ROOT / "engine" / "kernels"
    rows = list(csv.DictReader((kernels / "measurements.csv").read_text("utf-8").splitlines()))
    days, values = re.compile(r"20\d\d-\d\d-\d\d"), re.compile(r"\d+(\.\d+)?(e-\d)?(\.\.\d+(\.\d+)?)?")
    assert rows and [row for row in rows if None in row or not all((row["topic"], row["what"], row["command"]))] == []
    assert [row for row in rows if not days.fullmatch(row["date"]) or not values.fullmatch(row["value"])] == []
    commands = {row["command"] for row in rows if row["command"].startswith("python -m ")}
    assert [each for each in commands if set(re.findall(r"--[a-z-]+", each)) - set(_options(each.split()[2]))] == []
    decisions = [path.read_text("utf-8") for path in kernels.rglob("DECISIONS.md")]
    quoted = [topic for page in decisions for topic in re.findall(r'MEASUREMENTS\.md,\s+"([^"]+)"', page)]
    assert quoted and set(quoted) <= {row["topic"] for row in rows}
