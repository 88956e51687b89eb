from __future__ import annotations

import json
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.source import Capabilities, Emit, Source, SourceFactory
from engine.commands import NO_DRAFTER, Ask, Close, Command, EngineOptions, GenerationSettings, Message, Stop
from engine.events import EngineError, EngineReady, ErrorKind, Step, TurnFinished, event_from_dict
from support.scripted import ANSWER, Script

from .conftest import Program

TEXT = "".join(ANSWER)
PRINTED = f"{TEXT}\n"
"""With its last line ended, on stdout or in a file."""
ISSUE_KEYS = {
    "text",
    "num_prompt_tokens",
    "num_tokens",
    "mean_acceptance_length",
    "acceptance_histogram",
    "num_spec_steps",
    "num_draft_tokens",
    "num_accepted_draft_tokens",
    "ttft_ms",
    "decode_ms",
    "tok_s",
    "settings",
}


def test_stdout_is_the_answer_and_nothing_else(program: Program) -> None:
    program.run("-p", "hi")
    assert (program.code, program.out.decode()) == (ExitCode.OK, PRINTED)


def test_stderr_is_one_line_of_figures(program: Program) -> None:
    (line,) = program.run("-p", "hi").err.splitlines()
    assert line == "12 tokens · 138 tok/s · first token 5 ms · 2.75 tokens a round"


@pytest.mark.parametrize(
    ("arguments", "stdin", "prompt"),
    [
        (["-p", "question"], b"", "question"),
        (["-p", "question"], None, "question"),
        ([], "überall\n".encode(), "überall\n"),
        (["-p", "explain"], b"x = 1\n", "explain\n\nx = 1\n"),
        (["-p", " "], b"x", "x"),
    ],
)
def test_the_prompt_is_the_argument_and_stdin(
    program: Program, arguments: list[str], stdin: bytes | None, prompt: str
) -> None:
    program.run(*arguments, stdin=stdin)
    assert program.engine.asked[0].messages == (Message("user", prompt),)


def test_flags_reach_the_engine(program: Program) -> None:
    program.run(
        *["some/model", "-p", "hi", "--system", "Be brief.", "--draft", "some/drafter", "--device", "cpu"],
        *["--block-size", "8", "--temperature", "0.7", "--top-p", "0.9", "--top-k", "40", "--seed", "5"],
        *["--max-new-tokens", "64", "--thinking"],
    )
    ask = program.engine.asked[0]
    assert program.engine.options == EngineOptions("some/model", "some/drafter", "cpu", time_rounds=False)
    assert ask.settings == GenerationSettings(
        block_size=8, temperature=0.7, top_p=0.9, top_k=40, seed=5, max_new_tokens=64, thinking=True
    )
    assert ask.messages == (Message("system", "Be brief."), Message("user", "hi"))


def test_without_speculation_no_drafter_is_loaded(program: Program) -> None:
    program.run("some/model", "-p", "hi", "--draft", "some/drafter", "--no-speculation")
    assert program.engine.options == EngineOptions("some/model", NO_DRAFTER)
    assert not program.engine.asked[0].settings.speculation


def test_json_is_one_object_with_the_documented_keys(program: Program) -> None:
    answer = json.loads(program.run("-p", "hi", "--json", "--seed", "3").out)
    assert answer.keys() >= ISSUE_KEYS
    assert (answer["text"], answer["thought"], answer["reason"]) == (TEXT, "a thought", "stop")
    assert answer["settings"] == GenerationSettings(seed=3).to_dict()
    assert answer["acceptance_histogram"] == [0, 1, 2, 1]
    assert (answer["target"], answer["drafter"], answer["device"]) == ("tiny", "tiny-DFlash", "cpu")


def test_stream_json_is_the_events(program: Program) -> None:
    lines = program.run("-p", "hi", "--stream-json").out.decode().splitlines()
    events = [event_from_dict(json.loads(line)) for line in lines]
    names = [type(event).__name__ for event in events]
    assert names == [
        *["LoadProgress", "LoadProgress", "EngineReady", "TurnStarted", "PrefillDone"],
        *["Step"] * len(ANSWER),
        "TurnFinished",
    ]
    answer = [t.text for event in events if isinstance(event, Step) for t in event.emitted if t.channel == "answer"]
    last = events[-1]
    assert isinstance(last, TurnFinished) and last.text == "".join(answer)


@pytest.mark.parametrize("flags", [[], ["--json"], ["--stream-json"], ["-x"]])
def test_a_file_gets_the_bytes_that_a_pipe_would(program: Program, tmp_path: Path, flags: list[str]) -> None:
    piped = program.run("-p", "hi", *flags).out
    path = tmp_path / "answer"
    path.write_text("something longer that was here before " * 200)
    before = path.read_bytes()
    program.run("-p", "hi", *flags, "-o", str(path))
    assert program.code == ExitCode.USAGE and "--force" in program.err and not program.engines[1:]
    assert path.read_bytes() == before, "nothing is lost silently"
    program.run("-p", "hi", *flags, "-o", str(path), "--force")
    assert (program.code, program.out, path.read_bytes()) == (ExitCode.OK, b"", piped)


def test_a_dash_is_stdout(program: Program) -> None:
    assert program.run("-p", "hi", "-o", "-").out.decode() == PRINTED


def test_extract_prints_the_code_verbatim(program: Program) -> None:
    assert program.run("-p", "hi", "-x").out == b"print('hello')\n"


def test_extract_without_code_says_so_and_loses_nothing(program: Program) -> None:
    program.script = Script(pieces=("no ", "code"))
    program.run("-p", "hi", "-x")
    assert (program.code, program.out) == (1, b"")
    assert "no code\ndflash-chat: The answer has no code block.\n" in program.err


class Interrupted:
    """A source that never answers; Ctrl+C is pressed whenever it is asked or stopped."""

    recording = None
    capabilities = Capabilities()

    def __init__(self, emit: Emit, loads: bool) -> None:
        self.emit, self.loads, self.sent = emit, loads, list[type]()

    def start(self) -> None:
        if self.loads:
            self.emit(EngineReady("target", None, "cpu", "float32", 1, 4096, 1.0))

    def send(self, command: Command) -> None:
        self.sent.append(type(command))
        assert self.sent.count(Stop) < 2
        if isinstance(command, Ask | Stop):
            signal.raise_signal(signal.SIGINT)

    def join(self, timeout: float | None = None) -> None:
        pass


@pytest.mark.parametrize(
    ("loads", "code", "sent"),
    [(False, ExitCode.TIMEOUT, [Close]), (True, ExitCode.INTERRUPTED, [Ask, Stop, Close])],
    ids=["a time limit while it loads", "Ctrl+C twice"],
)
def test_who_wants_an_end_waits_for_no_answer(program: Program, loads: bool, code: ExitCode, sent: list[type]) -> None:
    made: list[Interrupted] = []

    def engine_of(_options: EngineOptions) -> SourceFactory:
        return lambda emit: made.append(Interrupted(emit, loads)) or made[-1]

    program.monkeypatch.setattr(program, "engine_of", engine_of)
    program.run("-p", "hi", *(() if loads else ("--timeout", "0.01")))
    assert program.code == code and made[0].sent == sent


def test_a_file_lost_while_generating_costs_no_text(program: Program, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    engine = program.engine_of

    def start_and_remove(options: EngineOptions) -> SourceFactory:
        def create(emit: Emit) -> Source:
            shutil.rmtree(folder)
            return engine(options)(emit)

        return create

    program.monkeypatch.setattr(program, "engine_of", start_and_remove)
    program.run("-p", "hi", "-o", str(folder / "answer.txt"))
    assert (program.code, program.out.decode()) == (ExitCode.USAGE, PRINTED)
    assert "could not be written" in program.err and "on stdout instead" in program.err


@pytest.mark.parametrize(
    ("kind", "code"), [("usage", 2), ("weights", 3), ("device", 4), ("generation", 1)]
)  # fmt: skip
@pytest.mark.parametrize("loading", [True, False])
def test_an_engine_error_is_explained_and_decides_the_code(
    program: Program, kind: ErrorKind, code: int, loading: bool
) -> None:
    error = EngineError(kind, "It broke.", "Mend it.", fatal=loading)
    program.script = Script(load_error=error) if loading else Script(error=error)
    program.run("-p", "hi")
    assert program.code == code
    assert program.err.endswith("dflash-chat: It broke.\n  Mend it.\n")
    assert program.out.decode() == ("" if loading else PRINTED)


def test_what_was_written_before_an_error_reaches_the_file(program: Program, tmp_path: Path) -> None:
    program.script = Script(error=EngineError("generation", "It broke."))
    program.run("-p", "hi", "-o", str(tmp_path / "answer"))
    assert (program.code, (tmp_path / "answer").read_text()) == (ExitCode.GENERATION, PRINTED)


def test_json_after_an_error_holds_the_partial_answer(program: Program) -> None:
    program.script = Script(error=EngineError("generation", "It broke.", fatal=True))
    answer = json.loads(program.run("-p", "hi", "--json").out)
    assert (program.code, answer["text"], answer["reason"]) == (ExitCode.GENERATION, TEXT, "error")


@pytest.mark.parametrize(
    ("reason", "words"), [("length", "--max-new-tokens"), ("context", "context is full")]
)  # fmt: skip
def test_an_answer_cut_by_a_limit_says_so(program: Program, reason: str, words: str) -> None:
    program.script = replace(Script(), reason=reason)  # type: ignore[arg-type]
    program.run("-p", "hi")
    assert program.code == ExitCode.OK
    assert words in program.err
