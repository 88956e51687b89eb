"""Files, presets, conversations, models and piped lines that nobody would write on purpose: words, the documented code,
and neither a traceback nor a hang."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from runpy import run_module
from typing import Any

import pytest

import engine
from dflash_tui.core.files.places import sessions_directory
from dflash_tui.core.settings.config import CONFIG_VARIABLE
from engine.errors import UsageFailure
from tests.cli.conftest import Program
from tests.pace import sampled

HEAD = {"type": "session", "version": 2, "created": "2026-11-23T08:00:00+01:00"}
MODEL = {"type": "model", "target": "tiny", "drafter": None}
Line = dict[str, Any] | bytes


def asked(turn: object, text: object = "hi", **more: object) -> dict[str, Any]:
    return {"type": "user", "turn": turn, "text": text, "time": "", **more}


def said(turn: int, text: str = "ok") -> list[Line]:
    finished = {"type": "finished", "turn": turn, "reason": "stop", "statistics": {}}
    return [{"type": "text", "turn": turn, "text": text}, finished]


CONVERSATIONS: dict[str, list[Line]] = {
    "empty": [],
    "no head": [asked(1)],
    "only a head": [HEAD],
    "newer version": [{**HEAD, "version": 99}, asked(1)],
    "version is a word": [{**HEAD, "version": "one"}, asked(1)],
    "no creation time": [{"type": "session", "version": 1}, asked(1)],
    "creation time is a number": [{**HEAD, "created": 5}, asked(1), *said(1)],
    "follows itself": [HEAD, asked(1, parent=1), *said(1)],
    "a cycle of two": [HEAD, asked(1, parent=2), *said(1), asked(2, parent=1), *said(2)],
    "a cycle of three": [HEAD, asked(2, parent=3), asked(3, parent=1), asked(1, parent=2), *said(1)],
    "parent is missing": [HEAD, asked(1), *said(1), asked(2, parent=7), *said(2)],
    "parent is below zero": [HEAD, asked(1, parent=-4), *said(1)],
    "parent is a word": [HEAD, asked(1, parent="root"), *said(1)],
    "parent is a list": [HEAD, asked(1, parent=[1]), *said(1)],
    "parent is huge": [HEAD, asked(1, parent=10**30), *said(1)],
    "turn is zero": [HEAD, asked(0), *said(0)],
    "turn is below zero": [HEAD, asked(-1), *said(-1)],
    "turn is a word": [HEAD, asked("one")],
    "turn is a fraction": [HEAD, asked(1.5)],
    "turn is nothing": [HEAD, asked(None)],
    "the same turn twice": [HEAD, asked(1, "one"), *said(1), asked(1, "two"), *said(1, "again")],
    "a question that is a number": [HEAD, asked(1, 42), *said(1)],
    "here is nowhere": [HEAD, asked(1), *said(1), {"type": "here", "turn": 9}],
    "here is a word": [HEAD, asked(1), *said(1), {"type": "here", "turn": "home"}],
    "a branch without a question": [HEAD, asked(1), *said(1), {"type": "branch", "turn": 5, "name": "x"}],
    "a branch called 5": [HEAD, asked(1), *said(1), {"type": "branch", "turn": 1, "name": 5}],
    "the middle was taken back": [HEAD, asked(1), *said(1), asked(2), *said(2), {"type": "taken_back", "turn": 1}],
    "cut within the second answer": [HEAD, asked(1), *said(1), asked(2), b'{"type": "text", "turn": 2, "te'],
    "cut within a character": [HEAD, asked(1), *said(1), b'{"type": "user", "turn": 2, "text": "\xc3'],
    "a torn line in the middle": [HEAD, asked(1), b'{"type": "text", "tu\n', *said(1)],
    "zeros in the middle": [HEAD, asked(1), b"\0" * 4096 + b"\n", *said(1)],
    "a list for a line": [HEAD, asked(1), b"[1, 2]\n", *said(1)],
    "deeply nested": [HEAD, asked(1), b"[" * 100_000 + b"\n", *said(1)],
    "statistics are a word": [HEAD, asked(1), {"type": "finished", "turn": 1, "reason": "stop", "statistics": "many"}],
    "an unknown reason": [HEAD, asked(1), {"type": "finished", "turn": 1, "reason": "bored", "statistics": {}}],
    "rounds of garbage": [HEAD, asked(1), {"type": "text", "turn": 1, "text": "a", "round": [9, "x"]}],
    "settings are a list": [
        HEAD, asked(1), {"type": "started", "turn": 1, "prompt_tokens": 1, "reused_tokens": 0,
          "settings": [1]}, *said(1),
    ],
    "a file without its content": [HEAD, asked(1, files=[{"name": "a", "digest": "0" * 64}]), *said(1)],
    "files are a word": [HEAD, asked(1, files="all"), *said(1)],
    "left out is nonsense": [HEAD, asked(1, left_out=["x", {}, 99]), *said(1)],
    "carried without a text": [HEAD, asked(1, carried={"kind": "summary"}), *said(1)],
    "a run of nothing": [HEAD, asked(1), *said(1), {"type": "ran", "turn": 1, "block": "x"}],
    "a title that is a list": [HEAD, {"type": "title", "title": ["a"]}, asked(1), *said(1)],
    "a model that is a number": [HEAD, {**MODEL, "target": 7}, asked(1), *said(1)],
    "half a surrogate": [HEAD, asked(1, "\ud800 x"), *said(1)],
    "1200 questions in a row": [HEAD, *(asked(turn, parent=turn - 1) for turn in range(1, 1201))],
    "a line of 5 MB": [HEAD, asked(1, "x" * 5_000_000), *said(1)],
}  # fmt: skip


def write(lines: list[Line]) -> Path:
    folder = sessions_directory()
    folder.mkdir(parents=True)
    path = folder / "2026-11-23T08-00-00-abcdef.jsonl"
    path.write_bytes(b"".join(each if isinstance(each, bytes) else json.dumps(each).encode() + b"\n" for each in lines))
    return path


@pytest.mark.parametrize("name", sampled([*CONVERSATIONS], 3))
def test_conversations_that_were_damaged(program: Program, name: str) -> None:
    write(CONVERSATIONS[name])
    for words in (
        ["sessions"],
        ["sessions", "find", "ok"],
        ["sessions", "show", "abcdef"],
        ["--continue", "-p", "more"],
    ):
        program.run(*words)
        assert program.code in (0, 2), (words, program.err)
        assert "Traceback" not in program.err
        if program.code == 2:
            assert program.err.startswith("dflash-chat: ") and "\n  " in program.err, "what happened, and what to do"
    program.run("--plain", "--continue", stdin=b"/tree\n/show\n/go 1\n/go 0\nmore\n/stats\n")
    assert program.code in (0, 2) and "Traceback" not in program.err


PRESETS = {
    "no table": "presets = 5",
    "a table of numbers": "[presets]\nx = 5",
    "an empty preset": "[presets.x]",
    "an unknown key": "[presets.x]\nmood = 'calm'",
    "a nested table": "[presets.x.y]\ntemperature = 1",
    "a word for a number": "[presets.x]\ntemperature = 'warm'",
    "a temperature of nan": "[presets.x]\ntemperature = nan",
    "a temperature of 99": "[presets.x]\ntemperature = 99",
    "a block of 1000": "[presets.x]\nblock_size = 1000",
    "a block that is true": "[presets.x]\nblock_size = true",
    "an endless seed": f"[presets.x]\nseed = {'9' * 400}",
    "a system of numbers": "[presets.x]\nsystem = [1, 2]",
    "an empty system": "[presets.x]\nsystem = ''",
    "a missing file": "[presets.x]\nsystem = '@nowhere.md'",
    "a folder for a file": "[presets.x]\nsystem = '@.'",
    "a device for a file": "[presets.x]\nsystem = '@/dev/zero'",
    "a user's home that is not there": "[presets.x]\nsystem = '@~nobody-here/x'",
    "a NUL in a file's name": '[presets.x]\nsystem = "@a\\u0000b"',
    "twice the same": "[presets.x]\nseed = 1\n[presets.x]\nseed = 2",
    "no TOML": "[presets.x\nseed = 1",
}


@pytest.mark.parametrize("name", PRESETS)
def test_presets_that_can_not_be_used(
    program: Program, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(PRESETS[name])
    monkeypatch.setenv(CONFIG_VARIABLE, str(path))
    refused(program.run("--preset", "x", "-p", "hi"), 2)


def written(data: bytes) -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        (folder / "file").write_bytes(data)
        return str(folder / "file")

    return make


def damaged_model(content: bytes | None) -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        (folder / "model").mkdir()
        if content is not None:
            (folder / "model" / "config.json").write_bytes(content)
        return str(folder / "model")

    return make


MODELS: dict[str, Callable[[Path], str]] = {
    "nothing": lambda _: "",
    "blanks": lambda _: "  ",
    "a missing folder": lambda folder: str(folder / "nowhere"),
    "a file": written(b"{}"),
    "a folder without a config": damaged_model(None),
    "a user that is not there": lambda _: "~nobody-here/model",
    "a path of 5000 letters": lambda _: "./" + "a" * 5000,
    "a path of many parts": lambda _: "a/b/c/d",
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("flag", [[], ["--draft"]])
def test_models_that_are_none(program: Program, flag: list[str], name: str, tmp_path: Path) -> None:
    words = [*flag, MODELS[name](tmp_path)]
    refused(program.run(*words, "-p", "hi"), 2 if name == "blanks" and not flag else 3)
    assert not program.engines, "nothing is loaded for it"


LINES = {
    "no such question": b"/edit 99 x\n/go 99\n/go nowhere\n/show 5\n/compare 8 9\n",
    "nothing there yet": b"/retry\n/edit\n/version\n/tree\n/name x\n/save\n/run\n/copy\n/stats\n/steps\n/markdown\n",
    "settings out of range": b"/temp nan\n/temp 1e400\n/block 0\n/block 9999999\n/seed x\n/seed -1\n/think maybe\n",
    "retries of nonsense": b"hi\n/retry block\n/retry temp hot\n/retry 77\n/retry mood calm\n/retry block 99\n",
    "places outside": b"hi\n/save 1 ../../x\n/save /etc/passwd\n/save 1 \x01\n/trace /proc/nope/x\n"
    b"/export gif\n/export html ../x\n",
    "files that are none": b"@/dev/zero\n@/ what?\n@~nobody-here/x y\n/system @/dev/zero\n/system @nowhere\n",
    "a block that never ends": b'"""\nhello\n',
    "only a fence": b'"""\n"""\n""" """\n',
    "a backslash at the end": b"hello\\",
    "control characters": b"hi \x1b[2J\x07\n/rename \x1b]0;x\x07\n/sessions\n",
    "a NUL": b"a\0b\n",
    "a line of 3 MB": b"x" * 3_000_000 + b"\n",
    "half a character": b"hello \xc3\n",
    "other conversations": b"/resume nope\n/resume\n/find\n/find zzzz\n/delete\n/rename\n/preset nope\n/race\n",
}


@pytest.mark.parametrize("name", LINES)
def test_piped_lines_of_nonsense(program: Program, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program.run("--plain", stdin=LINES[name])
    assert program.code in (0, 2) and "Traceback" not in program.err
    assert b"\x1b" not in program.out and b"\x07" not in program.out
    assert not (tmp_path.parent / "x").exists()


def refused(program: Program, code: int) -> None:
    assert program.code == code, program.err
    assert program.err.startswith("dflash-chat: ") and "\n  " in program.err, "what happened, and what to do"
    assert "Traceback" not in program.err and not program.out


NO_MODELS = ("nope", "./nope", "/dev/null", "a/b/c", "google/gemma-4-E2B-it", "bundled drafter nope", "x y")


def test_a_model_that_can_not_be_leaves_the_one_that_answers(program: Program) -> None:
    """It would cost as long as loading takes to let it go, and to have it back."""
    program.run("--plain", stdin="".join(f"/model {name}\n" for name in NO_MODELS).encode() + b"hi\n")
    out = program.out.decode()
    assert len(program.engines) == 1 and "The model before comes back" not in out and "Hello" in out
    for words in ("no folder nope", "no folder ./nope", "/dev/null", "no folder a/b/c", "per-layer", "called 'x y'"):
        assert words in out
    assert out.count("There is no folder nope.") == 2 and not program.err


@pytest.mark.parametrize("command", ["bench", "doctor", "selftest", "train x -o y"])
def test_a_folder_that_is_gone_is_told_before_pytorch_loads(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """It would end the process."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    program.run(*command.split())
    assert program.code == 2 and "The folder you are in is gone" in program.err


def test_without_this_program_the_engine_tells_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(SystemExit) as ended:
        run_module("engine.lab.bench", run_name="__main__")
    assert ended.value.code == 2 and "The folder you are in is gone" in capsys.readouterr().err
    with pytest.raises(UsageFailure, match="is gone"):
        engine.load()
