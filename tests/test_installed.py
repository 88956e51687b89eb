"""The program as somebody has it who installed it: from wheels, in an environment of its own, far from this tree."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import time
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
QUESTION = "Write a quicksort in Python"

pytestmark = [pytest.mark.ci, pytest.mark.slow, pytest.mark.timeout(600)]


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    result = subprocess.run(
        list(map(str, command)), cwd=cwd, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode == 0, f"{command}: {result.stdout}{result.stderr}"
    return result.stdout


def build(folder: Path, kind: str, into: Path) -> Path:
    run(sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", into, cwd=folder)
    return max(into.iterdir(), key=lambda path: path.stat().st_mtime_ns)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def drafters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT / "engine" / "drafters", "wheel", tmp_path_factory.mktemp("drafters"))


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where an environment has its programs that holds the wheel. Libraries are this environment's: torch is large."""
    place = tmp_path_factory.mktemp("environment") / "of its own"
    run(sys.executable, "-m", "venv", "--without-pip", place, cwd=place.parent)
    scheme = sysconfig.get_paths("venv", {"base": str(place), "platbase": str(place)})
    libraries = [path for path in sys.path if path.endswith("-packages")]
    Path(scheme["purelib"], "libraries.pth").write_text("\n".join(libraries) + "\n")
    python = Path(scheme["scripts"], "python")
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index", wheel, cwd=ROOT)
    return python.parent


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "another folder"
    folder.mkdir()
    return folder


def test_a_wheel_from_the_sdist_is_the_wheel(wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(build(ROOT, "sdist", tmp_path / "sdist")) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = (path for path in tmp_path.iterdir() if path.name.startswith("dflash_chat-"))
    again = build(source, "wheel", tmp_path / "again")
    facts = [{each.filename: each.CRC for each in zipfile.ZipFile(path).infolist()} for path in (wheel, again)]
    assert facts[0] == facts[1]
    assert (source / ".ci" / "install-torch").is_file(), "make chat runs it"


def test_what_a_package_page_shows(wheel: Path, drafters: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("METADATA"))
        page = archive.read(name).decode()
    assert "Author: " in page and "Project-URL: Source, https://" in page
    assert re.findall(r"!\[[^]]*\]\((?!https://)[^)]*\)", page) == [], "a package page has no folder of pictures"
    (version,) = re.findall(r"^Version: (.+)$", page, re.MULTILINE)
    assert f"Requires-Dist: dflash-chat-smollm2=={version}; extra == 'smollm2'" in page
    assert drafters.name.startswith(f"dflash_chat_smollm2-{version}-")
    assert wheel.stat().st_size < 16_500_000 and drafters.stat().st_size < 16_500_000


def test_every_command_runs_from_another_folder(programs: Path, elsewhere: Path) -> None:
    chat, python = programs / "dflash-chat", programs / "python"
    where = run(python, "-c", "import dflash_tui, engine; print(dflash_tui.__file__, engine.__file__)", cwd=elsewhere)
    assert where.count(str(programs.parent)) == 2 and str(ROOT) not in where
    assert run(chat, "--version", cwd=elsewhere) == run(python, "-m", "dflash_tui", "--version", cwd=elsewhere)
    assert "def quicksort" in run(chat, "-p", QUESTION, "--max-new-tokens", "40", cwd=elsewhere)
    assert "binary" in run(chat, "replay", "demo", cwd=elsewhere)
    assert "DFlash" in run(chat, "lesson", cwd=elsewhere)
    raced = json.loads(run(chat, "race", "-p", "hi", "--json", "--max-new-tokens", "8", cwd=elsewhere))
    assert len(raced["lanes"]) == 2
    library = (
        "import engine\nwith engine.load(time_rounds=False) as pair: print(pair.answer('hello', max_new_tokens=8))"
    )
    assert run(python, "-c", library, cwd=elsewhere).strip()


def health(url: str) -> int:
    """What a server answers to ``/health``."""
    try:
        with urllib.request.urlopen(f"{url.removesuffix('/v1')}/health", timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refusal:
        return refusal.code


def test_it_serves(programs: Path, elsewhere: Path) -> None:
    command = [programs / "dflash-chat", "serve", "--port", "0"]
    with subprocess.Popen(command, cwd=elsewhere, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            url = next(found[0] for line in server.stdout if (found := re.search(r"http://[\w.:]+", line)))
            deadline = time.monotonic() + 120
            while (status := health(url)) == 503:  # its model is being loaded
                assert time.monotonic() < deadline
                time.sleep(0.2)
            assert status == 200
        finally:
            server.terminate()


@pytest.mark.smollm2
def test_the_drafter_of_smollm2_comes_with_its_extra(
    programs: Path, drafters: Path, elsewhere: Path, tmp_path: Path
) -> None:
    chat, asked = programs / "dflash-chat", ("smollm2", "-p", "What is a river?", "--max-new-tokens", "24", "--json")
    without = subprocess.run([chat, *asked], cwd=elsewhere, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (without.returncode, without.stdout) == (3, "")
    assert "is not installed" in without.stderr and "pip install dflash-chat-smollm2" in without.stderr
    zipfile.ZipFile(drafters).extractall(tmp_path / "extra")
    answer = json.loads(run(chat, *asked, cwd=elsewhere, PYTHONPATH=str(tmp_path / "extra")))
    assert "river" in answer["text"] and answer["drafter"] == "SmolLM2-135M-Instruct-DFlash"
