"""The chat in lines: what it reads out, and the ways to stop and to leave."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from dflash_tui.cli.plain import PlainChat
from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.sessions.sessions import SessionLog, load_session
from engine.commands import EngineOptions, GenerationSettings
from engine.events import EngineError

from .scripted import SCRIPTS, Script, ScriptPlayer

CTRL_C = "\x03"


@pytest.fixture
def talk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Callable]:
    """Play ``lines`` on the keyboard and return the exit code, stdout, stderr and the conversation's record."""

    def play(*lines: str, script: Script = SCRIPTS["plain"]) -> tuple[int, str, str, Path]:
        typed = iter(lines)

        def read(prompt: str = "") -> str:
            print(prompt, end="")
            line = next(typed, None)
            if line is None:
                raise EOFError
            if line == CTRL_C:
                raise KeyboardInterrupt
            return line

        monkeypatch.setattr("builtins.input", read)
        log = SessionLog.create(tmp_path / "sessions")
        code = PlainChat(partial(ScriptPlayer, script, EngineOptions()), GenerationSettings(), log, {}).run()
        captured = capsys.readouterr()
        return code, captured.out, captured.err, log.path

    yield play


def test_a_question_is_answered_in_whole_lines(talk: Callable) -> None:
    code, out, _, path = talk("hello\\", "there")
    assert code == ExitCode.OK
    assert "I know little.\n" in out and "Ready." in out and "print('hello')\n" in out
    assert "\n(12 tokens" in out, "what it cost stands on a line of its own"
    assert [turn.question for turn in load_session(path).turns] == ["hello\nthere"]


def test_what_a_model_writes_can_not_act(talk: Callable) -> None:
    _, out, _, _ = talk("hello", script=SCRIPTS["escapes"])
    assert "\x1b" not in out and "\x07" not in out and "red" in out


def test_commands(talk: Callable) -> None:
    _, out, _, _ = talk(
        "/help", "/stats", "hi", "/stats", "/temp 9", "/temp warm", "/block 8", "/nope", "/quit", "never"
    )
    assert "/temp: temperature" in out and "no numbers before" in out
    assert "tokens written: " in out
    assert "temperature must be between 0 and 2, not 9" in out and "not “warm”" in out
    assert "There is no command /nope" in out and "never" not in out


def test_a_new_chat_has_a_record_of_its_own(talk: Callable) -> None:
    _, _, _, path = talk("one", "/new", "two")
    questions = {load_session(file).turns[0].question for file in path.parent.glob("*.jsonl")}
    assert questions == {"one", "two"}


def test_control_c_at_the_prompt_says_how_to_leave(talk: Callable) -> None:
    code, out, _, _ = talk(CTRL_C, "hello")
    assert code == ExitCode.OK and "Ctrl+D leaves." in out and "print('hello')" in out


def test_control_c_stops_an_answer(talk: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    say = PlainChat._say

    def say_once(self: PlainChat, text: str) -> None:
        say(self, text)
        monkeypatch.setattr(PlainChat, "_say", say)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(PlainChat, "_say", say_once)
    code, out, _, _ = talk("go", "/stats", script=SCRIPTS["endless"])
    assert code == ExitCode.OK and "⏹ stopped" in out and "Speed:" in out


def test_an_engine_that_can_not_load_says_why(talk: Callable) -> None:
    error = EngineError("weights", "model.safetensors is truncated.", "Run make again.", fatal=True)
    code, _, err, _ = talk(script=Script(load_error=error))
    assert code == ExitCode.WEIGHTS and "truncated" in err and "Run make again." in err
