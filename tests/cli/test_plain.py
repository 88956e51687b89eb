"""The chat in lines: what it reads out, and the ways to stop and to leave."""

from __future__ import annotations

import io
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from dflash_tui.cli.plain.chat import PlainChat
from dflash_tui.cli.plain.commands import COMMANDS
from dflash_tui.core.conversation.start import Models, Start
from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.sessions.sessions import SessionLog, load_session
from dflash_tui.core.source import Capabilities, Emit, Happening, SourceFactory
from engine.commands import EngineOptions, GenerationSettings
from engine.events import EngineError, EngineReady
from support.scripted import ANSWER, SCRIPTS, Script, ScriptPlayer

from .conftest import Keyboard

CTRL_C = "\x03"
HELLO = "".join(ANSWER)


@pytest.fixture
def talk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Callable]:
    """Play ``lines`` on the keyboard and return the exit code, stdout, stderr and the conversation's record."""

    def play(
        *lines: str,
        script: Script = SCRIPTS["plain"],
        typing: bool = True,
        models: Models | None = None,
        source: SourceFactory | None = None,
    ) -> tuple[int, str, str, Path]:
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
        monkeypatch.setattr("sys.stdin", Keyboard() if typing else io.StringIO())
        source = source or partial(ScriptPlayer, script, EngineOptions())
        begin = Start(models=models)
        code = PlainChat(source, GenerationSettings(), log, begin, tmp_path / "out").run()
        captured = capsys.readouterr()
        return code, captured.out, captured.err, log.path

    yield play


def test_a_question_is_answered_in_whole_lines(talk: Callable) -> None:
    code, out, _, path = talk("hello\\", "there")
    assert code == ExitCode.OK
    assert "I know little.\n" in out and "Ready." in out and "print('hello')\n" in out
    assert "\n(12 tokens, 138 per second, " in out, "what it cost stands on a line of its own"
    assert [turn.question for turn in load_session(path).turns] == ["hello\nthere"]


def test_what_a_model_writes_can_not_act(talk: Callable) -> None:
    _, out, _, _ = talk("hello", script=SCRIPTS["escapes"])
    assert "\x1b" not in out and "\x07" not in out and "red" in out


def test_commands(talk: Callable, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("red\n")
    _, out, _, _ = talk(
        *("/help", "/stats", f"What is in @{tmp_path}/notes.txt?", "/stats", "/temp 9", "/temp warm", "/block 8"),
        *("/settings", "/context", "/nope", "/quit", "never"),
    )
    assert "/temp 0–2: temperature" in out and "no numbers before" in out
    assert "tokens written: " in out and "notes.txt, 1 line)" in out
    assert "block size: 8\n" in out and "system prompt: none" in out and "4,096 tokens are used" in out
    assert "Temperature must be between 0 and 2, not 9." in out and "not “warm”" in out
    assert "There is no command /nope" in out and "never" not in out


def test_a_new_chat_has_a_record_of_its_own(talk: Callable) -> None:
    _, _, _, path = talk("one", "/new", "two")
    questions = {load_session(file).turns[0].question for file in path.parent.glob("*.jsonl")}
    assert questions == {"one", "two"}


def test_control_c_at_the_prompt_says_how_to_leave(talk: Callable) -> None:
    code, out, _, _ = talk(CTRL_C, "hello")
    assert code == ExitCode.OK and "Ctrl+D leaves." in out and "print('hello')" in out


def test_control_c_stops_an_answer(talk: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    say = PlainChat.read_out

    def say_once(self: PlainChat, text: str) -> None:
        say(self, text)
        monkeypatch.setattr(PlainChat, "read_out", say)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(PlainChat, "read_out", say_once)
    code, out, _, _ = talk("go", "/stats", script=SCRIPTS["endless"])
    assert code == ExitCode.OK and ", stopped)" in out and "Speed:" in out


def test_an_engine_that_can_not_load_says_why(talk: Callable) -> None:
    error = EngineError("weights", "model.safetensors is truncated.", "Run make again.", fatal=True)
    code, _, err, _ = talk(script=Script(load_error=error))
    assert code == ExitCode.WEIGHTS and "truncated" in err and "Run make again." in err


def test_versions_branches_and_what_is_read_out(talk: Callable) -> None:
    _, out, _, path = talk(
        "one",
        "/retry temp 0.5",
        "/version",
        "/edit 1 two",
        "/name side",
        "/tree",
        "/go 1",
        "/go side",
        "/show",
        "/edit",
        "three",
    )
    assert "version 2 of 2 of the answer)" in out
    assert "You are behind question 1, version 1 of 2 of the answer: one" in out
    assert "3, the beginning, version 2 of 2 of the question, branch side, you are here: two" in out
    assert "Question 3, branch side, version 2 of 2 of the question: two\nHello, wörld" in out
    assert "Question 3 is: two\nInstead (Enter alone leaves it): " in out
    kept = load_session(path).tree
    assert [turn.question for turn in kept] == ["one", "one", "two", "three"] and kept.here == 4


def test_piped_lines_are_questions_and_mistakes_an_exit_code(talk: Callable) -> None:
    code, out, _, path = talk("one", "two", '"""', "three", "lines", 'of it"""', "/delete", "/nope", typing=False)
    assert [turn.question for turn in load_session(path).turns] == ["one", "two", "three\nlines\nof it"]
    assert "You: one\nHello" in out and "Nobody is there to agree." in out
    assert code == ExitCode.USAGE
    assert talk("one", typing=False)[0] == ExitCode.OK


class Other(ScriptPlayer):
    """A context of 80 tokens, each of them a word, and a drafter of another kind."""

    capabilities = Capabilities(count=lambda ask: sum(len(message.content.split()) for message in ask.messages))

    def __init__(self, emit: Emit) -> None:
        def told(event: Happening) -> None:
            if isinstance(event, EngineReady):
                event = replace(event, max_context=80, drafter="tiny-assistant")
            emit(event)

        super().__init__(SCRIPTS["plain"], EngineOptions(), told)


def test_what_no_longer_fits_goes_on_in_a_new_chat_and_nothing_is_lost(talk: Callable, tmp_path: Path) -> None:
    """An edited question too, whose place is in the conversation before."""
    one, two, three, four = (f"{name}{' more' * 20}" for name in ("one", "two", "three", "four"))
    _, out, err, path = talk(one, two, "three", f"/edit 3 {three}", "new", four, source=Other)
    assert "drop or new: " in out and "Traceback" not in err
    (new,) = (each for each in path.parent.glob("*.jsonl") if each != path)
    assert [turn.question for turn in load_session(path).turns] == [one, two, "three"]
    kept = load_session(new).tree
    assert [(turn.question, turn.parent, turn.answer) for turn in kept] == [(three, 0, HELLO), (four, 1, HELLO)]


def test_a_race_names_its_lanes_and_is_no_part_of_the_conversation(talk: Callable) -> None:
    _, out, _, path = talk("/race", "hi", "/race", "/block 8", "/race what else?", source=Other)
    assert "Ask something first" in out
    for lane in ("one token at a time: ", "MTP, auto: ", "MTP, block 16: ", "MTP, block 8: ", "MTP, block 4: "):
        assert f"\n{lane}" in out
    assert out.count("Every lane has run ") == 4, "two races of three runs, and the last run has the result"
    assert [turn.question for turn in load_session(path).turns] == ["hi"]


def test_rounds_and_figures_are_sentences(talk: Callable) -> None:
    _, out, _, _ = talk("hi", "/steps 0", "/steps 99", "/stats", "/thought")
    for said in ("Round 0 of 5 wrote ", "The first token comes from reading the prompt", "has rounds 0 to 5"):
        assert said in out
    assert "a thought\n" in out and not set(out) & set("│─┌└█▁▸⏹τ…")


def test_help_points_to_nothing_that_is_not_there(talk: Callable) -> None:
    _, out, _, _ = talk("/help", "/help retry", "/zzzz")
    assert all(f"/{name}" in out for name in COMMANDS)
    assert "F1" not in out and "Esc" not in out and "Ctrl+Q" not in out
