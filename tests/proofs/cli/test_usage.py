"""What can't be done as asked: two readable lines on stderr, nothing on stdout, the documented exit code."""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path

import click
import pytest

from dflash_tui.cli.chat import chat
from dflash_tui.cli.flags.options import TOPICS, Flag
from dflash_tui.cli.headless.prompt import MAX_PROMPT_BYTES
from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.files.places import bundled_themes_dir
from tests.cli.conftest import Program

FORMATS = ("--json", "--stream-json", "-x")
HEADLESS = (*([each] for each in FORMATS), ["-o", "f"])
THEMED = (["-p", "hi"], [], ["replay"], ["lesson"])


def refused(program: Program, message: str, hint: str) -> None:
    first, second = program.err.rstrip("\n").split("\n")
    assert first.startswith("dflash-chat: ") and message in first
    assert second.startswith("  ") and hint in second
    assert (program.code, program.out, program.engines) == (ExitCode.USAGE, b"", [])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--block-size", "99"], "Block size must be between 2 and 16, or auto, not 99"),
        (["--temperature", "2.5"], "Temperature must be between 0 and 2"),
        (["--temperature", "nan"], "Temperature must be between 0 and 2"),
        (["--top-p", "0"], "Top-p must be above 0"),
        (["--seed", "-1"], "Seed must be"),
        (["--block-size", "x"], "'x' is neither a whole number nor auto"),
        (["--device", "tpu"], "'tpu' is not one of"),
        (["--timeout", "0"], "0<x<="),
        (["--no-such-flag"], "No such option"),
        (["one", "two"], "unexpected extra argument"),
    ],
)
def test_flags_out_of_range(program: Program, arguments: list[str], message: str) -> None:
    refused(program.run("-p", "hi", *arguments), message, "dflash-chat --help")


@pytest.mark.parametrize(
    ("arguments", "stdin", "message", "hint"),
    [
        *((["-p", "hi", *two], b"", "exclude each other", "Choose one") for two in combinations(FORMATS, 2)),
        *(
            (["-p", blank], stdin, "The prompt is empty", '-p "')
            for blank, stdin in product(("", " \n"), (b"", b" \n\t", None))
        ),
        ([], b"", "The prompt is empty", '-p "'),
        *(
            ([each, "--nonsense"], b"", "--nonsense", f"dflash-chat {each} --help")
            for each in ("selftest", "race", "export")
        ),
        (["--preset", "x"], b"", "Did you mean '--system'?", "dflash-chat --help"),
        (["--tempature", "1"], b"", "Did you mean '--temperature'?", "dflash-chat --help"),
        (["--resume"], b"", "--resume without an ID", "dflash-chat sessions lists them"),
        (["--resume", "-p", "hi"], None, "--resume without an ID", "dflash-chat sessions lists them"),
        (["--verify"], b"", "No such option '--verify'.", "dflash-chat --help"),
        ([], b"word " * 1024 * 1024, "longer than 2 MiB", "head -c"),
        (["-p", "x"], b"y" * MAX_PROMPT_BYTES, "longer than 2 MiB", "head -c"),
        ([], b"abc\xff\xfe", "not UTF-8 text (byte 3)", "iconv"),
        (["Write a sort"], None, "no model called 'Write a sort'", 'dflash-chat -p "Write a sort"'),
        (["lessn"], None, "Did you mean lesson?", "dflash-chat lesson"),
        (["replay", "gpu", "--top-k", "5"], None, "--top-k is a flag of the chat", "Type: dflash-chat replay gpu. "),
        (["--top-k=5", "replay", "a b"], None, "--top-k is a flag of the chat", "Type: dflash-chat replay 'a b'. "),
        (
            ["sessions", "list", "--plain", "x"],
            None,
            "dflash-chat sessions list has none",
            "dflash-chat sessions list x. ",
        ),
        *(([*each, "--theme", "x"], None, "no theme 'x'", "dflash-light") for each in THEMED),
        *((flags, None, "needs a prompt", "-p") for flags in HEADLESS),
        ([], None, "stdout is not a terminal", "-p"),
        (["help", "cooking"], b"", "no help topic 'cooking'", "decoding"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_what_cannot_be_done_as_asked(
    program: Program, arguments: list[str], stdin: bytes | None, message: str, hint: str
) -> None:
    refused(program.run(*arguments, stdin=stdin), message, hint)


def test_a_command_may_stand_behind_its_flags_and_take_those_of_the_screen(program: Program) -> None:
    plain = program.run("replay", "maths").out
    assert plain and program.run("replay", "maths", "--ascii", "--no-mouse").out == plain
    assert program.run("--reduced-motion", "--theme", "mono", "replay", "maths").out == plain
    assert b"\nmaths " in program.run("--theme", "mono", "replay", "--list").out


@pytest.mark.parametrize("name", ["missing/answer.txt", "folder", "file/answer.txt"])
def test_an_output_file_that_cannot_be_written(program: Program, tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("kept")
    refused(program.run("-p", "hi", "-o", str(tmp_path / name)), "can't be written", "-o")


@pytest.mark.parametrize("name", ["file", "file/below", "a" * 5000, "/".join(["a" * 250] * 17)])
def test_a_directory_for_code_that_cannot_be_written(program: Program, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("kept")
    for flag in ("--out", "--save-dir"):
        refused(program.run("-p", "hi", f"{flag}={tmp_path / name}"), "Nothing can be saved in", flag)


def test_help_fits_on_a_screen_and_begins_with_examples(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    program.run("--help")
    lines = program.out.decode().splitlines()
    assert program.code == ExitCode.OK
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 84
    assert all(theme.stem in program.out.decode() for theme in bundled_themes_dir().glob("*.toml"))
    assert lines.index('  dflash-chat -p "Write a quicksort in Python"    print the answer') < lines.index("Options:")


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
