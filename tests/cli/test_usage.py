"""What can't be done as asked: two readable lines on stderr, nothing on stdout, the documented exit code."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from dflash_tui.cli.chat import chat
from dflash_tui.cli.help import TOPICS, Flag
from dflash_tui.cli.main import commands
from dflash_tui.cli.prompt import MAX_PROMPT_BYTES
from dflash_tui.core.exit_codes import ExitCode

from .conftest import Program


def refused(program: Program, message: str, hint: str) -> None:
    first, second = program.err.rstrip("\n").split("\n")
    assert first.startswith("dflash-chat: ") and message in first
    assert second.startswith("  ") and hint in second
    assert (program.code, program.out, program.engines) == (ExitCode.USAGE, b"", [])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--block-size", "99"], "Block size must be between 2 and 16, or auto, not 99"),
        (["--block-size", "1"], "Block size must be between 2 and 16, or auto, not 1"),
        (["--temperature", "2.5"], "Temperature must be between 0 and 2"),
        (["--temperature", "nan"], "Temperature must be between 0 and 2"),
        (["--top-p", "0"], "Top-p must be above 0"),
        (["--top-k", "-1"], "Top-k must be 0"),
        (["--seed", "-1"], "Seed must be"),
        (["--max-new-tokens", "0"], "Max-new-tokens must be at least 1"),
        (["--block-size", "x"], "'x' is neither a whole number nor auto"),
        (["--device", "tpu"], "'tpu' is not one of"),
        (["--timeout", "0"], "x>0"),
        (["--no-such-flag"], "No such option"),
        (["one", "two"], "unexpected extra argument"),
    ],
)
def test_flags_out_of_range(program: Program, arguments: list[str], message: str) -> None:
    refused(program.run("-p", "hi", *arguments), message, "dflash-chat --help")


@pytest.mark.parametrize("formats", [["--json", "--stream-json"], ["-x", "--json"], ["-x", "--stream-json"]])
def test_one_output_format_at_a_time(program: Program, formats: list[str]) -> None:
    refused(program.run("-p", "hi", *formats), "exclude each other", "Choose one")


@pytest.mark.parametrize("stdin", [b"", b" \n\t", None])
@pytest.mark.parametrize("prompt", ["", " \n"])
def test_an_empty_prompt(program: Program, prompt: str, stdin: bytes | None) -> None:
    refused(program.run("-p", prompt, stdin=stdin), "The prompt is empty", '-p "')


def test_empty_stdin_alone(program: Program) -> None:
    refused(program.run(stdin=b""), "The prompt is empty", '-p "')


@pytest.mark.parametrize("command", ["tune", "race", "export"])
def test_a_command_that_is_called_wrongly_points_at_its_own_help(program: Program, command: str) -> None:
    refused(program.run(command, "--nonsense"), "--nonsense", f"dflash-chat {command} --help")


def test_a_mistyped_flag_is_met_by_one_that_is_nearly_it_or_by_none(program: Program) -> None:
    refused(program.run("--tempature", "1"), "Did you mean '--temperature'?", "dflash-chat --help")
    refused(program.run("--verify"), "No such option '--verify'.", "dflash-chat --help")


def test_five_megabytes_on_stdin(program: Program) -> None:
    refused(program.run(stdin=b"word " * 1024 * 1024), "longer than 2 MiB", "head -c")


def test_prompt_and_stdin_together_have_the_same_limit(program: Program) -> None:
    refused(program.run("-p", "x", stdin=b"y" * MAX_PROMPT_BYTES), "longer than 2 MiB", "head -c")


def test_stdin_that_is_not_text(program: Program) -> None:
    refused(program.run(stdin=b"abc\xff\xfe"), "not UTF-8 text (byte 3)", "iconv")


def test_a_question_in_the_place_of_the_model(program: Program) -> None:
    refused(
        program.run("Write a quicksort", stdin=None),
        "no model called 'Write a quicksort'",
        'dflash-chat -p "Write a quicksort"',
    )


@pytest.mark.parametrize(
    ("words", "meant"), [(["lessn"], "lesson"), (["repaly", "demo"], "replay"), (["sesions"], "sessions")]
)
def test_a_mistyped_command(program: Program, words: list[str], meant: str) -> None:
    refused(program.run(*words, stdin=None), f"Did you mean {meant}?", f"dflash-chat {meant}")


@pytest.mark.parametrize("command", [["-p", "hi"], [], ["replay"], ["lesson"]])
def test_a_mistyped_theme(program: Program, command: list[str]) -> None:
    refused(program.run(*command, "--theme", "paper", stdin=None), "no theme 'paper'", "dflash-light")


def test_a_known_theme_and_one_that_a_file_names_are_no_mistake(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert program.run("-p", "hi", "--theme", "dflash-light").code == ExitCode.OK
    monkeypatch.setenv("DFLASH_CHAT_THEME", "paper")
    assert program.run("-p", "hi").code == ExitCode.OK


def test_a_folder_whose_name_is_nearly_a_command(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lessons").mkdir()
    assert program.run("lessons", "-p", "hi").engine.options.target == "lessons"


@pytest.mark.parametrize("flags", [["--json"], ["--stream-json"], ["-x"], ["-o", "f"], ["--system", "s"]])
def test_headless_flags_without_a_prompt(program: Program, flags: list[str]) -> None:
    refused(program.run(*flags, stdin=None), "needs a prompt", "-p")


def test_no_chat_without_a_terminal_to_draw_on(program: Program) -> None:
    refused(program.run(stdin=None), "stdout is not a terminal", "-p")


@pytest.mark.parametrize("name", ["missing/answer.txt", "folder", "file/answer.txt"])
def test_an_output_file_that_cannot_be_written(program: Program, tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("kept")
    refused(program.run("-p", "hi", "-o", str(tmp_path / name)), "can't be written", "-o")


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_directory_for_code_that_cannot_be_written(program: Program, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("kept")
    refused(program.run("-p", "hi", "--out", str(tmp_path / name)), "Nothing can be saved in", "--out")


def test_checking_the_output_file_changes_nothing(program: Program, tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    for name in ("old", "new"):
        refused(program.run("-p", "hi", "-o", str(tmp_path / name), "--json", "-x"), "exclude", "Choose")
    assert [path.read_text() for path in tmp_path.iterdir() if path.is_file()] == ["old"]


def test_help_fits_on_a_screen_and_begins_with_examples(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    program.run("--help")
    lines = program.out.decode().splitlines()
    assert program.code == ExitCode.OK
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 84
    assert lines.index('  dflash-chat -p "Write a quicksort in Python"    print the answer') < lines.index("Options:")


def test_help_names_every_command(program: Program) -> None:
    words = re.findall(r"[\w-]+", program.run("--help").out.decode())
    assert [name for name in commands() if name not in words] == []


def test_every_flag_has_a_topic_that_describes_it(program: Program) -> None:
    texts = {topic: program.run("help", topic).out.decode() for topic in TOPICS}
    options = [option for option in chat.params if isinstance(option, click.Option) and option.name != "version"]
    for option in options:
        assert isinstance(option, Flag) and option.help, option.opts
        assert [name for name in option.opts if name not in texts[option.topic]] == []
    assert program.run("help").out.decode().count("dflash-chat help ") == len(TOPICS)


def test_help_points_at_the_topics_and_names_every_exit_code(program: Program) -> None:
    text = program.run("-h").out.decode()
    assert all(topic in text for topic in TOPICS)
    codes = text[text.index("Exit codes:") :].replace("\n", " ").replace(",", " ")
    described = program.run("help", "scripts").out.decode()
    for code in ExitCode:
        assert f" {code.value} " in codes and f"  {code.value}  " in described


def test_an_unknown_topic_names_the_known_ones(program: Program) -> None:
    refused(program.run("help", "cooking"), "no help topic 'cooking'", "decoding")


def test_version(program: Program) -> None:
    assert program.run("--version").out.startswith(b"dflash-chat 0.")
