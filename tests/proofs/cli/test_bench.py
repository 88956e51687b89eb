"""``dflash-chat bench``: the engine's bench, with this program's way to say what is wrong."""

from __future__ import annotations

import errno
import json
from typing import NoReturn

import pytest

from dflash_tui.cli.commands import bench
from dflash_tui.core.exit_codes import ExitCode
from tests.cli.conftest import Program


def test_it_measures(program: Program) -> None:
    words = "--shape tiny --layers 6 --device cpu --widths 2 --contexts 40 --prompts --routing uniform --count 2 --json"
    assert program.run("bench", *words.split()).code == ExitCode.OK
    (figures,) = json.loads(program.out)["rounds"]
    assert figures["width"] == 2 and figures["round_ms"] > 0


@pytest.mark.parametrize(
    ("words", "code", "about"),
    [
        ("--shape tiny --layers 7", ExitCode.USAGE, "multiple of 6"),
        ("--target nowhere", ExitCode.WEIGHTS, "nowhere"),
        ("--shape tiny --count 0", ExitCode.USAGE, "--count must be 1 or more, not 0"),
        ("--shape tiny --contexts 40 -5", ExitCode.USAGE, "--contexts must be 1 or more, not -5"),
        ("--shape tiny --contexts 40 300000", ExitCode.USAGE, "tiny takes no more than 262144 tokens"),
        ("--shape tiny --layers 0", ExitCode.USAGE, "--layers must be 1 or more, not 0"),
        ("--shape tiny --out nowhere/at/all.json", ExitCode.USAGE, "no folder"),
        ("--what-is-this", ExitCode.USAGE, "--what-is-this"),
    ],
)
def test_what_cannot_be_measured(words: str, code: ExitCode, about: str, program: Program) -> None:
    assert program.run("bench", *words.split()).code == code
    assert about in program.err and not program.out


def test_a_wrong_flag_says_where_the_flags_are(program: Program) -> None:
    program.run("bench", "--what-is-this")
    assert program.err.splitlines()[-1].strip() == "dflash-chat bench --help lists the flags."


def test_help_fits_on_a_screen(program: Program) -> None:
    assert program.run("bench", "--help").code == ExitCode.OK
    assert program.out.startswith(b"usage: dflash-chat bench") and len(program.out.splitlines()) <= 40


def test_help_that_nobody_reads_ends_as_other_output_does(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(text: str) -> NoReturn:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(bench, "say", gone)
    assert program.run("bench", "--help").code == ExitCode.BROKEN_PIPE
