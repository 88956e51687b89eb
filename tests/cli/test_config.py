"""Settings from the environment and from files: who wins, what is refused, and ``dflash-chat config``."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, NoReturn

import pytest

from dflash_tui.cli.chat import chat
from dflash_tui.cli.flags.config_files import settable
from dflash_tui.cli.flags.options import variable_of
from dflash_tui.cli.invocation import COMPLETION
from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.files.places import settle_home
from dflash_tui.core.settings.config import CONFIG_VARIABLE

from .conftest import Program


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's configuration file, which isn't there yet; the current folder is a project's."""
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv(CONFIG_VARIABLE, raising=False)
    monkeypatch.chdir(project)
    path = tmp_path / "config" / "dflash-chat" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


def seed(program: Program, *flags: str) -> int:
    """The seed of a question asked now."""
    program.run("-p", "hi", *flags)
    assert program.code == ExitCode.OK, program.err
    (ask,) = program.engine.asked
    return ask.settings.seed


def test_a_home_that_one_may_not_enter_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As in a container that runs as somebody else than its files are for."""
    stat = os.stat

    def refusing(path: Any, **how: Any) -> os.stat_result:
        if path == f"{tmp_path}/.":
            raise PermissionError(13, "Permission denied", path)
        return stat(path, **how)

    monkeypatch.setattr(os, "stat", refusing)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    settle_home()
    assert Path(os.environ["HOME"]) == tmp_path / f"dflash-chat-{os.getuid()}"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RuntimeError("can't start new thread"), ExitCode.DEVICE),
        (MemoryError(), ExitCode.DEVICE),
        (PermissionError(13, "Permission denied", "/x"), ExitCode.USAGE),
        (OSError(28, "No space left on device"), ExitCode.GENERATION),
    ],
)
def test_what_a_machine_refuses_has_its_code(
    program: Program, own: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, code: ExitCode
) -> None:
    def refused(options: object) -> NoReturn:
        raise error

    monkeypatch.setattr(program, "engine_of", refused)
    assert program.run("-p", "hi").code == code, program.err


def test_the_nearer_word_wins(program: Program, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert seed(program) == 0
    own.write_text("seed = 1")
    assert seed(program) == 1
    monkeypatch.setenv("DFLASH_CHAT_SEED", "3")
    assert seed(program) == 3
    assert seed(program, "--seed", "4") == 4


@pytest.mark.parametrize(("text", "size"), [('block_size = "auto"', "auto"), ("block_size = 8", 8)])
def test_block_sizes_are_numbers_or_auto_and_what_an_earlier_version_wrote_is_left_alone(
    program: Program, own: Path, text: str, size: int | str
) -> None:
    own.write_text(text)
    program.run("-p", "hi")
    assert program.code == 0 and program.engine.asked[0].settings.block_size == size


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed = 1\nblock_size = 99", "line 2: block_size can't be 99: block size must be between 2 and 16"),
        ('block_size = "8"', 'line 1: block_size must be a whole number or "auto", not "8"'),
        ("block_size = true", 'line 1: block_size must be a whole number or "auto", not true'),
        ("temperature = [1]", "line 1: temperature must be a number, not [1]"),
        ("thinking = 1", "line 1: thinking must be true or false, not 1"),
        ('device = "tpu"', "line 1: device can't be \"tpu\": 'tpu' is not one of"),
        ("context = 0", "line 1: context can't be 0: 0 is not in the range"),
        ("theme = 5", "line 1: theme must be text in quotes, not 5"),
        ('\n\ntheem = "mono"', "line 3: there is no setting theem; do you mean theme?"),
        ('prompt = "hi"', "line 1: there is no setting prompt"),
        ('[keys]\nsave = "f9"', "line 1: there is no setting keys; every action is in the palette"),
        ('seed = 1\n[presets.x]\nsystem = "s"', "line 2: there is no setting presets; dflash-chat --system"),
        ("seed = ", "line 1: Invalid value"),
    ],
)
def test_a_mistake_is_told_by_line(program: Program, own: Path, text: str, message: str) -> None:
    own.write_text(text)
    program.run("-p", "hi")
    first, second = program.err.rstrip("\n").split("\n")
    assert first.startswith(f"dflash-chat: {own}, {message}")
    assert "Correct the file" in second
    assert (program.code, program.out, program.engines) == (ExitCode.USAGE, b"", [])


def test_a_variable_of_an_earlier_version_is_told(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DFLASH_CHAT_PRESET", "tutor")
    program.run("-p", "hi")
    assert program.code == ExitCode.USAGE and "dflash-chat --system @tutor.md" in program.err


def test_help_and_doctor_survive_a_broken_file(program: Program, own: Path) -> None:
    own.write_text("seed = ")
    assert program.run("--help").code == program.run("help", "decoding").code == ExitCode.OK
    assert program.run("-p", "hi").code == ExitCode.USAGE


def test_every_setting_has_its_variable() -> None:
    for name, parameter in settable(chat).items():
        assert parameter.envvar == variable_of(name) == f"DFLASH_CHAT_{name.upper()}"
    assert not {"prompt", "output", "as_json", "timeout", "resume", "trace"} & set(settable(chat))


def test_a_wrong_variable_is_named(program: Program, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DFLASH_CHAT_SEED", "many")
    program.run("-p", "hi")
    assert program.code == ExitCode.USAGE and "DFLASH_CHAT_SEED" in program.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("dflash-chat --dev", "--device"), ("dflash-chat do", "doctor"), ("dflash-chat --device ", "cuda"),
        ("dflash-chat completion ", "fish"), ("dflash-chat replay co", "code-sampled"),
        ("dflash-chat replay --theme dflash-", "dflash-light"), ("dflash-chat help sc", "scripts"),
        ("dflash-chat race bun", "bundled"), ("dflash-chat bun", "bundled"),
    ],
)  # fmt: skip
def test_a_shell_is_answered(
    program: Program, own: Path, monkeypatch: pytest.MonkeyPatch, words: str, expected: str
) -> None:
    monkeypatch.setenv(COMPLETION, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    text = program.run().out.decode()
    assert f"plain,{expected}" in text.splitlines() and program.engines == []
