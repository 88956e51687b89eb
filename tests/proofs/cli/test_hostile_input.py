"""Conversations, flags and piped lines that nobody would write on purpose: words, the documented code, and
neither a traceback nor a hang."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dflash_tui.cli.chat import chat
from dflash_tui.cli.plain.commands import COMMANDS
from dflash_tui.core.conversation.question_context import messages_of
from dflash_tui.core.files.places import sessions_directory
from dflash_tui.core.replay.recording import Recording
from dflash_tui.core.sessions.archive import conversation_markdown
from dflash_tui.core.sessions.sessions import load_session
from engine.events import EngineReady, TurnFinished, TurnStarted, event_to_dict
from engine.rounds.blocks import columns_of
from engine.rounds.rows import row_of
from support.events_for_tests import make_step
from tests.cli.conftest import Program
from tests.pace import examples

ANY = settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))
HEAD = {"type": "session", "version": 3, "created": "2026-11-23T08:00:00+01:00"}
KINDS = ("user", "title", "here", "taken_back", "branch", "file", "session", "x")
EVENTS = ("EngineReady", "TurnStarted", "PrefillDone", "TurnFinished", "EngineError", "Step")
FIELDS = (
    "turn", "parent", "text", "thought", "time", "system", "once", "files", "left_out", "carried", "settings",
    "num_prompt_tokens", "milliseconds", "reason", "statistics", "message", "hint", "target", "drafter", "banner",
    "title", "name", "digest", "version", "created",
)  # fmt: skip
values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 6) | st.integers() | st.floats() | st.text(max_size=6)
    | st.sampled_from(["stop", "\ud800", "\x1b[2J"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3),
    max_leaves=4,
)  # fmt: skip
sound: dict[str, st.SearchStrategy[Any]] = {
    "user": st.builds(lambda turn, parent: {"turn": turn, "parent": parent, "text": "hi"}, *[st.integers(0, 5)] * 2),
    "TurnStarted": st.builds(lambda turn: event_to_dict(TurnStarted(turn, 3, 0, {})), st.integers(0, 5)),
    "TurnFinished": st.builds(lambda turn: event_to_dict(TurnFinished(turn, "stop", "")), st.integers(0, 5)),
    "EngineReady": st.just(event_to_dict(EngineReady("t", None, "cpu", "float32", 16, 99, 1.0))),
}


@st.composite
def rounds(draw: st.DrawFn) -> Any:
    """Rounds of a turn, sound or spoiled in one place, in flight or landed."""
    count, first = draw(st.integers(1, 40)), draw(st.integers(0, 3))
    steps = [make_step(2, 5, index=index, time=index / 10, text="ok") for index in range(count)]
    turn = draw(st.integers(1, 3))
    columns = columns_of(first, [row_of(replace(step, turn=turn)) for step in steps])
    if draw(st.booleans()):
        columns[draw(st.integers(0, len(columns) - 1))] = draw(values)
    packed = b64encode(zlib.compress(json.dumps(columns).encode())).decode()
    return draw(st.sampled_from([columns, packed, packed[:-9]]))


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """A line of a conversation: sound, spoiled in some fields, or none at all."""
    kind = draw(st.sampled_from([*KINDS, *EVENTS]))
    name = "event" if kind in EVENTS else "type"
    fields = draw(sound.get(kind, st.just({}))) | draw(st.dictionaries(st.sampled_from(FIELDS), values, max_size=4))
    whole = json.dumps(draw(st.just({name: kind, **fields}) | rounds() | st.sampled_from(["text", [1, 2]])))
    return draw(st.sampled_from([whole.encode(), whole.encode(), whole[:7].encode(), b"\0" * 99, b"[" * 9999])) + b"\n"


@ANY
@given(st.sampled_from([HEAD, HEAD, HEAD, {**HEAD, "version": 9}, {}]), st.lists(lines(), max_size=12), st.booleans())
def test_a_conversation_that_anybody_wrote(
    tmp_path_factory: pytest.TempPathFactory, head: dict[str, Any], rest: list[bytes], cut: bool
) -> None:
    path = tmp_path_factory.mktemp("any") / "2026-11-23T08-00-00-abcdef.jsonl"
    path.write_bytes((json.dumps(head).encode() + b"\n" + b"".join(rest))[: -3 if cut else None])
    try:
        conversation = load_session(path)
    except ValueError as error:
        assert str(path) in str(error)
        return
    assert conversation_markdown(conversation) and messages_of(conversation.turns, None) is not None
    list(Recording(conversation).events())


@ANY
@given(st.lists(lines(), min_size=1, max_size=12))
def test_commands_about_a_conversation_that_anybody_wrote(program: Program, rest: list[bytes]) -> None:
    path = sessions_directory() / "2026-11-23T08-00-00-abcdef.jsonl"
    for words in (["sessions"], ["sessions", "list", "ok"], ["sessions", "show", "abcdef"], ["--continue", "-p", "hi"]):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(json.dumps(HEAD).encode() + b"\n" + b"".join(rest))
        ended_in_words(program.run(*words))


FLAGS = [
    option.opts[0]
    for option in chat.params
    if isinstance(option, click.Option) and not option.is_flag and not option.hidden and "-o" not in option.opts
]
texts = st.text(max_size=12) | st.sampled_from(
    ["nan", "1e400", "-1", "99999999999", "@/dev/zero", "@~nobody-here/x", "/dev/null", "a/b/c/d", "./" + "a" * 5000]
)


@ANY
@given(st.sampled_from(FLAGS), texts)
def test_a_flag_with_anything_behind_it(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag: str, value: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if "\0" not in value:  # no shell can give it
        ended_in_words(program.run(f"{flag}={value}" if flag.startswith("--") else f"{flag}{value}", "-p", "hi"))


SLASHES = sorted(COMMANDS.keys() - {"quit", "model"})
WORDS = (
    "", "99 x", "nowhere", "nan", "1e400", "0", "-1", "block", "temp hot", "77", "1 ../../x", "/etc/passwd", "1 \x01",
    "/proc/nope/x", "gif", "html ../x", "@/dev/zero", "zzzz", "\x1b]0;x\x07", "\x07", "last",
)  # fmt: skip
typed = st.builds("/{} {}".format, st.sampled_from(SLASHES), st.sampled_from(WORDS)) | st.sampled_from(
    ["hi", '"""', '""" """', "hello\\", "hi \x1b[2J\x07", "a\0b", "hello \udcc3", "@/dev/zero", "@/ what?", "x" * 9**6]
)


@ANY
@given(st.lists(typed, max_size=8))
def test_piped_lines_of_nonsense(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    program.run("--plain", stdin="\n".join(said).encode("utf-8", "surrogateescape"))
    assert program.code in (0, 2) and "Traceback" not in program.err
    assert b"\x1b" not in program.out and b"\x07" not in program.out
    assert not (tmp_path.parent / "x").exists()


def ended_in_words(program: Program) -> None:
    assert "Traceback" not in program.err
    assert program.code in (0, 2, 3), program.err
    if program.code:
        assert program.err.startswith("dflash-chat: ") and "\n  " in program.err, "what happened, and what to do"


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
