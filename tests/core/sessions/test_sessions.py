from __future__ import annotations

import json
import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from dflash_tui.core.conversation.question_context import messages_of
from dflash_tui.core.files.places import sessions_directory
from dflash_tui.core.replay.bundled import find_recording
from dflash_tui.core.replay.recording import read_recording
from dflash_tui.core.sessions.sessions import SessionLog, load_session
from engine.commands import Message
from engine.events import (
    EmittedToken,
    EngineError,
    EngineReady,
    LoadProgress,
    Step,
    TurnFinished,
    TurnStarted,
    TurnStatistics,
)
from engine.rounds.blocks import block_of

READY = EngineReady("target", "drafter", "cpu", "float32", 16, 4096, 1.5)


def step(turn: int, index: int, *tokens: EmittedToken) -> Step:
    return Step(turn, index, 0.1, (), 0, tokens, 1, 0.0, 1.0, 1.0, 10, 16, 0.0)


def say(log: SessionLog, turn: int, question: str, pieces: list[str], reason: str | None = "stop") -> None:
    log.user(turn, question)
    for index, piece in enumerate(pieces):
        log.record(step(turn, index, EmittedToken(1, piece, "accepted")))
    if reason:
        log.record(TurnFinished(turn, reason, "".join(pieces), "", TurnStatistics(num_tokens=len(pieces))))  # type: ignore[arg-type]


def test_a_conversation_comes_back(tmp_path: Path) -> None:
    log = SessionLog.create(tmp_path)
    log.record(LoadProgress("load", 1, 2))
    log.record(READY)
    say(log, 1, "Hi\nthere", ["Hel", "lo \u2028 é😀", "!\n"])
    say(log, 2, "more", ["part"], reason="stopped")
    log.close()
    conversation = load_session(log.path)
    assert (conversation.target, conversation.drafter) == ("target", "drafter")
    first, second = conversation.turns
    assert (first.question, first.answer, first.reason) == ("Hi\nthere", "Hello \u2028 é😀!\n", "stop")
    assert first.figures.num_tokens == 3
    assert (second.answer, second.reason) == ("part", "stopped")
    assert messages_of(conversation.turns, None)[:2] == (
        Message("user", "Hi\nthere"),
        Message("assistant", first.answer),
    )


@pytest.mark.parametrize(
    ("name", "turns", "kilobytes"), [("html", (1,), 14), ("chat-sampled", (1, 2, 3, 4), 18), ("lesson", (1, 3, 6), 11)]
)
def test_what_is_recorded_is_small(tmp_path: Path, name: str, turns: tuple[int, ...], kilobytes: int) -> None:
    """An answer of 796 tokens with drafts, a short chat, and 358 tokens that are each a round of its own. The settings
    of every turn come back, though they are written once."""
    log = SessionLog.create(tmp_path)
    recorded = [event for event in read_recording(find_recording(name)).events() if getattr(event, "turn", 0) in turns]
    log.record(READY)
    for event in recorded:
        if isinstance(event, TurnStarted):
            log.user(event.turn, event.question)
        log.record(event)
    log.close()
    assert [event for event in read_recording(log.path).events() if getattr(event, "turn", 0)] == recorded
    assert log.path.stat().st_size <= 1000 * kilobytes
    blocks = [line for line in map(json.loads, log.path.read_text().splitlines()) if isinstance(line, str)]
    assert len(blocks) == sum(max(len(turn.rounds) // 32, 1) for turn in load_session(log.path).turns)


def test_a_beginning_that_is_damaged_costs_no_text(tmp_path: Path) -> None:
    log = SessionLog.create(tmp_path)
    for turn in (1, 2):
        log.user(turn, "q")
        log.record(TurnStarted(turn, 4, 0, {"seed": 1}))
        log.record(step(turn, 0, EmittedToken(1, f"of {turn}", "plain")))
    log.close()
    log.path.write_text(log.path.read_text().replace('"TurnStarted","turn":2', '"TurnStarted","turn":[]'))
    conversation = load_session(log.path)
    assert [turn.answer for turn in conversation.turns] == ["of 1", "of 2"] and conversation.damaged == 1


def test_thought_and_control_tokens_stay_out_of_the_answer(tmp_path: Path) -> None:
    log = SessionLog.create(tmp_path)
    log.user(1, "q")
    log.record(step(1, 0, EmittedToken(1, "hm", "plain", "thought"), EmittedToken(2, "yes", "plain")))
    log.record(step(1, 1, EmittedToken(3, "", "plain", "control")))
    log.close()
    (turn,) = load_session(log.path).turns
    assert (turn.answer, turn.thought, turn.reason) == ("yes", "hm", None)


@pytest.mark.parametrize("course", ["rrw", "rww", "wrrw", "wr"])
def test_a_refused_question_and_what_is_behind_it_are_kept(course: str, tmp_path: Path) -> None:
    log = SessionLog.create(tmp_path)
    log.record(READY)
    for turn, fate in enumerate(course, start=1):
        if fate == "w":
            say(log, turn, f"question {turn}", [f"answer {turn}"])
        else:
            log.user(turn, f"question {turn}")
            log.record(EngineError("server", "Too many questions.", "Wait.", turn=turn))
            log.record(TurnFinished(turn, "error", ""))
    log.close()
    conversation = load_session(log.path)
    told = [(turn.question, turn.answer, turn.error, turn.reason) for turn in conversation.turns]
    refused = EngineError("server", "Too many questions.", "Wait.")
    assert conversation.damaged == 0 and told == [
        (
            f"question {turn}",
            *((f"answer {turn}", None, "stop") if fate == "w" else ("", replace(refused, turn=turn), "error")),
        )
        for turn, fate in enumerate(course, start=1)
    ]


def test_nothing_said_leaves_no_file(tmp_path: Path) -> None:
    log = SessionLog.create(tmp_path / "sessions")
    log.record(READY)
    log.close()
    assert not (tmp_path / "sessions").exists()


def test_every_line_is_on_disk_at_once_and_private(tmp_path: Path) -> None:
    log = SessionLog.create(tmp_path)
    say(log, 1, "q", ["a", "b"], reason=None)
    head, question, *rounds = map(json.loads, log.path.read_text().splitlines())
    assert (head["type"], question["type"]) == ("session", "user")
    assert ["".join(block_of(line).texts()) for line in rounds] == ["a", "b"]
    assert log.path.stat().st_mode & 0o777 == 0o600
    log.close()


@pytest.mark.parametrize("resumed", [False, True])
def test_a_conversation_that_is_deleted_while_it_is_open_is_written_again(tmp_path: Path, resumed: bool) -> None:
    """By a clean-up, or another window: what is said behind it would be nowhere."""
    log = SessionLog.create(tmp_path / "sessions")
    say(log, 1, "before", ["one"])
    if resumed:
        log.close()
        log = SessionLog.resume(log.path)
    shutil.rmtree(tmp_path / "sessions")
    say(log, 2, "behind", ["two"])
    log.close()
    turns = load_session(log.path).turns
    assert [(turn.question, turn.answer) for turn in turns] == [("before", "one"), ("behind", "two")]
    assert log.failure is None and log.path.stat().st_mode & 0o777 == 0o600


def test_a_cut_last_line_costs_that_line_only(tmp_path: Path) -> None:
    log = SessionLog.create(tmp_path)
    say(log, 1, "q", ["one ", "two ", "three"], reason=None)
    whole = log.path.read_bytes()
    log.close()
    last = whole.rindex(b"\n", 0, -1) + 1
    for end in range(last, len(whole)):
        log.path.write_bytes(whole[:end])
        assert load_session(log.path).turns[0].answer == "one two "


def test_threads_do_not_mix_lines(tmp_path: Path) -> None:
    log = SessionLog.create(tmp_path)
    log.user(0, "q")

    def name(text: str) -> None:
        for _ in range(50):
            log.title(text)

    threads = [threading.Thread(target=name, args=(text * 500,)) for text in "abc"]
    for thread in threads:
        thread.start()
    say(log, 1, "q1", ["x" * 500] * 50)
    for thread in threads:
        thread.join()
    log.close()
    conversation = load_session(log.path)
    assert conversation.damaged == 0 and len(conversation.turns[-1].answer) == 25_000 and conversation.title


def test_an_unwritable_directory_is_remembered_and_not_raised(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    log = SessionLog.create(tmp_path / "file" / "sessions")
    assert log.failure is None
    say(log, 1, "q", ["a"])
    assert log.failure is not None and "not being saved" in log.failure


def test_what_a_full_disk_does_not_take_is_written_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = SessionLog.create(tmp_path)
    say(log, 1, "q", ["kept, "], reason=None)
    real_write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real_write(descriptor, data[: len(data) // 2]))
    log.record(step(1, 1, EmittedToken(1, "waited, ", "plain")))
    monkeypatch.undo()
    assert not log.asked, "nobody is told to continue what was not kept"
    assert log.failure is not None and "No space left" in log.failure
    assert load_session(log.path).turns[0].answer == "kept, ", "a line is written whole or not at all"
    log.record(step(1, 2, EmittedToken(1, "after", "plain")))
    log.close()
    assert (log.failure, load_session(log.path).turns[0].answer) == (None, "kept, waited, after")


def test_writing_after_close_does_nothing(tmp_path: Path) -> None:
    log = SessionLog.create(tmp_path)
    log.user(1, "q")
    log.close()
    log.close()
    size = log.path.stat().st_size
    log.user(2, "late")
    assert (log.path.stat().st_size, log.failure) == (size, None)


def test_the_state_variable_moves_the_sessions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DFLASH_CHAT_STATE", str(tmp_path))
    assert sessions_directory() == tmp_path / "sessions"
    assert SessionLog.nowhere().path.parent == sessions_directory(), "a replay lists what was said, too"
    monkeypatch.delenv("DFLASH_CHAT_STATE")
    assert sessions_directory().parts[-2:] == ("dflash-chat", "sessions")
