"""Files, system prompts in files, and a full context, on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.files.places import sessions_directory
from dflash_tui.core.sessions.sessions import load_session
from dflash_tui.core.settings.config import CONFIG_VARIABLE

from .conftest import Program


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path / "config.toml"))
    (tmp_path / "config.toml").write_text("")
    (tmp_path / "a.txt").write_text("alpha\n")
    (tmp_path / "b.txt").write_text("beta")
    return tmp_path


def asked(program: Program) -> list[str]:
    (ask,) = program.engine.asked
    return [message.content for message in ask.messages]


def test_files_go_in_front_of_the_prompt(program: Program) -> None:
    program.run("-p", "Compare.", "--file", "a.txt", "-f", "b.txt", "--file", "a.txt")
    assert program.code == ExitCode.OK, program.err
    assert asked(program) == ["File a.txt:\n```\nalpha\n```\n\nFile b.txt:\n```\nbeta\n```\n\nCompare."]


def test_a_prompt_without_files_is_what_it_was(program: Program) -> None:
    program.run("-p", "look at @a.txt", stdin=b"piped")
    assert asked(program) == ["look at @a.txt\n\npiped"], "a script's words name no files"


def test_a_dash_is_what_is_piped_in(program: Program) -> None:
    program.run("-p", "-", stdin=b"the prompt")
    assert asked(program) == ["the prompt"]
    program.run("-p", "-", stdin=None)
    assert program.code == ExitCode.USAGE and "from a pipe" in program.err
    program.run("-p", "-", stdin=b"")
    assert program.code == ExitCode.USAGE and "empty" in program.err


def test_files_stay_with_the_conversation(program: Program, here: Path) -> None:
    program.run("-p", "first")
    sessions_directory().mkdir(parents=True, exist_ok=True)
    path = sessions_directory() / "2026-11-23T07-00-00-abcdef.jsonl"
    path.write_text('{"type": "session", "version": 3, "created": "2026-11-23T07:00:00+00:00"}\n')
    program.run("-p", "What is it?", "-c", "--file", "a.txt")
    assert program.code == ExitCode.OK, program.err
    (here / "a.txt").unlink()
    program.run("-p", "And now?", "-c")
    assert "alpha" in asked(program)[0] and asked(program)[-1] == "And now?"
    assert load_session(path).turns[0].question == "What is it?"


def test_a_file_that_can_t_go(program: Program, here: Path) -> None:
    (here / "x\n\x1b[31m😀@").symlink_to("/dev/zero")
    program.run("-p", "hi", "--file", "x\n\x1b[31m😀@")
    assert program.code == ExitCode.USAGE and "a pipe or a device" in program.err and not program.engines
    assert "Traceback" not in program.err and "\x1b" not in program.err


def test_an_empty_name_is_no_folder(program: Program) -> None:
    program.run("-p", "hi", "--file", "")
    assert program.code == ExitCode.USAGE and "is empty.\n  Name a file" in program.err


def test_more_than_the_context_holds(program: Program, here: Path) -> None:
    (here / "a.txt").write_text("word " * 20_000)
    program.run("-p", "hi", "--file", "a.txt")
    assert program.code == ExitCode.USAGE and "the context holds 4,096" in program.err and not program.engine.asked


def test_a_system_prompt_in_a_file(program: Program, here: Path) -> None:
    (here / "tutor.md").write_text("Ask back.\n")
    program.run("-p", "hi", "--system", "@tutor.md")
    assert asked(program) == ["Ask back.", "hi"]
    program.run("-p", "hi", "--system", "@@home")
    assert asked(program) == ["@home", "hi"]
    program.run("-p", "hi", "--system", "@gone.md")
    assert program.code == ExitCode.USAGE and "There is no file gone.md" in program.err
