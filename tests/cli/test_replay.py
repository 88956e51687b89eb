from __future__ import annotations

import json
from pathlib import Path

import pytest

from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.replay.bundled import bundled_recordings
from dflash_tui.core.sessions.sessions import SessionLog
from engine.events import EngineReady, LoadProgress, TurnFinished, TurnStarted, event_from_dict
from support.events_for_tests import make_step
from support.scripted import ANSWER

from .conftest import Program


def test_a_headless_run_is_recorded_and_replays(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    answer = program.run("-p", "hi", "--trace", str(path)).out
    assert program.code == 0 and answer.decode().rstrip("\n") == "".join(ANSWER)
    assert program.run("replay", str(path)).out == answer and program.code == 0
    lines = [
        event_from_dict(json.loads(line)) for line in program.run("replay", str(path), "--stream-json").out.splitlines()
    ]
    assert isinstance(lines[0], EngineReady) and isinstance(lines[-1], TurnFinished)
    assert not any(isinstance(event, LoadProgress) for event in lines)


def test_a_cut_trace_prints_what_it_holds_and_says_so(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl"
    whole = bundled_recordings()["html"].read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    program.run("replay", str(path))
    assert program.code == ExitCode.GENERATION and b"<!DOCTYPE html>" in program.out
    assert "ends within an answer" in program.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nope"], "Bundled recordings: demo, "),
        (["demo", "--pace", "fast"], "is no pace"),
        (["demo", "--pace", "0"], "0.0001"),
    ],
)
def test_what_cannot_be_replayed_is_said(program: Program, arguments: list[str], words: str) -> None:
    assert program.run("replay", *arguments).code == ExitCode.USAGE and words in program.err


def test_any_conversation_replays(program: Program) -> None:
    """The latest, or one by a part of its name or id."""
    program.run("replay", "--last")
    assert program.code == ExitCode.USAGE and "no conversation to replay yet" in program.err
    for question in ("another question", "one question"):
        log = SessionLog.create()
        log.user(1, question)
        for event in (
            TurnStarted(1, 3, 0, {}),
            make_step(0, 0, index=0, text=question),
            TurnFinished(1, "stop", question),
        ):
            log.record(event)
        log.close()
    for words in (["--last"], ["One Question"], [log.path.stem]):
        assert program.run("replay", *words).out.decode().strip() == "one question" and program.code == 0
    assert program.run("replay", "question").code == ExitCode.USAGE and "2 conversations" in program.err


def test_the_bundled_recordings_have_names(program: Program) -> None:
    names = program.run("replay", "--list").out.decode().split()
    assert {"demo", "code", "html", "maths", "lesson"} <= set(names)
