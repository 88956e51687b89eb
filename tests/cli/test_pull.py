"""``dflash-chat pull`` as the command line sees it; what it fetches, and how, is tested against a hub in tests/hub."""

from __future__ import annotations

from pathlib import Path

import pytest

from dflash_tui.cli.commands import pull
from dflash_tui.cli.headless.status import describe_progress
from dflash_tui.core.exit_codes import ExitCode
from engine.events import LoadProgress
from engine.hub.fetching import Fetching
from engine.hub.pairs import PairFolders
from engine.tools.gpus import Gpu

from .conftest import Program


def test_a_model_must_be_named(program: Program) -> None:
    program.run("pull")
    assert (program.code, program.out) == (ExitCode.USAGE, b"") and "MODEL" in program.err


def test_a_pair_without_a_known_drafter(program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def find(target: str, drafter: str | None, fetching: Fetching) -> PairFolders:
        assert fetching.refresh and not fetching.offline
        return PairFolders(target, tmp_path, None, None)

    monkeypatch.setattr(pull, "find_pair", find)
    program.run("pull", "some/model")
    assert (program.code, program.out.decode()) == (ExitCode.OK, f"{tmp_path}\n")
    assert "there is none for this model" in program.err and "google/gemma-4-26B-A4B-it" in program.err


@pytest.mark.parametrize(
    ("flags", "card", "fetched"),
    [
        (["--weights", "fp8"], None, "RedHatAI/gemma-4-26B-A4B-it-FP8-Dynamic"),
        (["--weights", "bf16"], Gpu("a card", 24 * 2**30, 0), "google/gemma-4-26B-A4B-it"),
        ([], Gpu("a card", 24 * 2**30, 0), "cyankiwi/gemma-4-26B-A4B-it-AWQ-4bit"),
        ([], Gpu("a card", 141 * 2**30, 0), "google/gemma-4-26B-A4B-it"),
        ([], None, "google/gemma-4-26B-A4B-it"),
    ],
)
def test_the_copy_that_fits_is_fetched(
    flags: list[str], card: Gpu | None, fetched: str, program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = []

    def find(target: str, drafter: str | None, fetching: Fetching) -> PairFolders:
        asked.append(target)
        return PairFolders(target, tmp_path, tmp_path, "a drafter")

    monkeypatch.setattr(pull, "find_pair", find)
    monkeypatch.setattr(pull, "first_gpu", lambda: card)
    program.run("pull", "google/gemma-4-26B-A4B-it", *flags)
    assert (program.code, asked) == (ExitCode.OK, [fetched])
    assert (fetched in program.err) == (fetched != "google/gemma-4-26B-A4B-it")


def test_a_folder_that_has_a_command_s_name(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pull").mkdir()
    (tmp_path / "pull" / "config.json").write_text("{}")
    program.run("./pull", "-p", "hi")
    assert (program.code, program.engine.options.target) == (ExitCode.OK, "./pull")


@pytest.mark.parametrize(
    ("done", "total", "rate", "text"),
    [
        (1_000_000, 4_000_000, 0.0, "1 of 4 MB"),
        (1_000_000, 4_000_000, 100_000.0, "1 of 4 MB (25%) · 0.1 MB/s · 30 s left"),
        (12_000_000_000, 52_000_000_000, 80_000_000.0, "12.0 of 52.0 GB (23%) · 80.0 MB/s · 8 min left"),
        (12_000_000_000, 52_000_000_000, 2_000_000.0, "12.0 of 52.0 GB (23%) · 2.0 MB/s · 5.6 h left"),
        (4_000_000, 4_000_000, 100_000.0, "4 of 4 MB"),
    ],
)
def test_rate_and_time_left(done: int, total: int, rate: float, text: str) -> None:
    assert describe_progress(LoadProgress("downloading", done, total, "bytes", rate)) == f"downloading: {text}"
